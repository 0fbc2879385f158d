// The places of an id in a template of a URL or of a body: `{id}` is the whole id, `{1}` its first segment.

const grammar = /\{(id|[1-9]\d?)\}/g

/** A template cut at its places. `places`: 0 for the whole id, else the number of the segment. */
export interface Cut {
  /** One more than there are places. */
  texts: string[]
  places: number[]
}

/** @returns a problem: `{id}` beside `{1}`, or a number left out */
export function cut(template: string): Cut | { problem: string } {
  const texts = template.split(grammar)
  const places = texts.filter((_, index) => index % 2 === 1).map(name => (name === 'id' ? 0 : Number(name)))
  if (places.includes(0) && places.some(place => place > 0)) {
    return { problem: 'must hold {id}, or {1} and so on, not both' }
  }
  return { texts: texts.filter((_, index) => index % 2 === 0), places }
}

/**
 * The template with an id in its places.
 *
 * @param segments of the id
 * @param write text as it stands there
 * @throws {RangeError} if the id has too few segments
 */
export function fill({ texts, places }: Cut, segments: string[], write: (segments: string[], index: number) => string) {
  let filled = texts[0]
  for (const [index, place] of places.entries()) {
    if (place > segments.length) throw new RangeError(`the id has no segment ${place}`)
    filled += write(place === 0 ? segments : [segments[place - 1]], index) + texts[index + 1]
  }
  return filled
}
