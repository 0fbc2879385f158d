// The cursor of an event stream: the position in each of its rooms, as the `id` of its events. A browser sends the last
// one it got as Last-Event-ID when it connects again, so that the rooms go on from there. `HASH~E.S~~.S`: a hash of the
// stream's keys, then in their order the epoch and seq of each; nothing for a value, and no epoch where it is that of the
// room before, as it is of all rooms in one log.
import { fnv1a } from '@keycast/backbone'
import { type Position, positionsAfter } from '@keycast/protocol'

/** A stream's keys at most: so the cursor of as many rooms stays below 4 KB, which every proxy takes in a header. */
export const KEYS_MAX = 100

const positionGrammar = /^([^.~]{0,192})\.(\d{1,16})$/

/** Each event repeats it. No stream gives a longer one: a client may write what it likes. */
const CURSOR_CHARACTERS_MAX = 4_096

export function createCursor(keys: readonly string[], positions: Map<string, Position>) {
  const hash = hashOf(keys)
  let places = placesOf(keys, positions)

  /** @returns the next event's id; `undefined` where its message moves no position */
  return function idAfter(text: string): string | undefined {
    const moved = positionsAfter(text)
    if (!moved) return undefined
    for (const [key, { epoch = positions.get(key)?.epoch, seq }] of moved) {
      // A client that sends requests of its own may have subscribed to keys that are not this stream's.
      if (epoch === undefined || !keys.includes(key)) continue
      const isFurther = positions.get(key)?.epoch === epoch
      positions.set(key, { epoch, seq })
      // Thousands of messages may come at once, each of which moves one place of a hundred.
      if (isFurther)
        places = places.map((place, index) => (keys[index] === key ? `${place.split('.', 1)}.${seq}` : place))
      else places = placesOf(keys, positions)
    }
    return positions.size === 0 ? undefined : [hash, ...places].join('~')
  }
}

function placesOf(keys: readonly string[], positions: Map<string, Position>): string[] {
  let epochBefore: string | undefined
  return keys.map(key => {
    const position = positions.get(key)
    if (!position) return ''
    const { epoch, seq } = position
    const text = `${epoch === epochBefore ? '' : encoded(epoch)}.${seq}`
    epochBefore = epoch
    return text
  })
}

/** @returns `undefined`: the text is no cursor of these keys */
export function readCursor(text: string, keys: readonly string[]): Map<string, Position> | undefined {
  const [hash, ...texts] = text.split('~')
  if (hash !== hashOf(keys) || texts.length !== keys.length) return undefined
  const positions = new Map<string, Position>()
  let epochBefore = ''
  for (const [index, each] of texts.entries()) {
    if (each === '') continue
    const [, epoch, seq] = positionGrammar.exec(each) ?? []
    if (epoch === undefined || !Number.isSafeInteger(Number(seq))) return undefined
    epochBefore = decoded(epoch) || epochBefore
    if (epochBefore === '') return undefined
    positions.set(keys[index], { epoch: epochBefore, seq: Number(seq) })
  }
  // Percent-encoded it may be many times as long as it came.
  const characters = placesOf(keys, positions).join().length
  return characters + hash.length < CURSOR_CHARACTERS_MAX ? positions : undefined
}

/** Other keys, or the same in another order, would take one room's position for another's. */
const hashOf = (keys: readonly string[]) => (fnv1a(keys.join('\n')) >>> 0).toString(36)

/** An epoch may be any string: percent-encoded, it has none of the cursor's own signs. */
const encoded = (epoch: string) => encodeURIComponent(epoch).replaceAll('.', '%2E').replaceAll('~', '%7E')

function decoded(text: string) {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
