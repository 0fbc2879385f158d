// The body of a namespace that is asked by POST: JSON with `{id}`, or `{1}` and so on, in its texts. No id can leave its
// text.
import { partsOf } from '@keycast/protocol'
import { cut, fill } from './placeholders.ts'

interface BodyTemplate {
  bodyFor: (id: string) => string
  /** As in {@link UrlTemplate}. */
  places: number[]
}

/** Reads a template, as text or as a map, and returns the function that makes bodies of it. */
export function readBodyTemplate(written: string | Record<string, unknown>): BodyTemplate | { problem: string } {
  const read = cut(typeof written === 'string' ? written : JSON.stringify(written))
  if ('problem' in read) return read
  try {
    // Outside of a text no JSON has such a word, so no place can be there.
    JSON.parse(read.texts.join('id'))
  } catch {
    return { problem: 'must be JSON, with {id} in its texts alone' }
  }
  const write = (segments: string[]) => JSON.stringify(segments.join('/')).slice(1, -1)
  return { bodyFor: id => fill(read, partsOf(id).segments, write), places: read.places }
}
