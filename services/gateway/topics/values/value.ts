// One version of a key's value, with room for what each encoding makes of it once for all sessions.
import type { Answer, Delta } from '@keycast/backbone'
import { detached, type Format } from '@keycast/service'

/** One place for each encoding, where a value or an entry keeps what that encoding made of it. */
export type Slots<T> = (T | undefined)[]

/**
 * Room for the encodings there are now. It grows if there are more; an array that starts empty would grow to 17 places
 * with the first one used.
 */
export const emptySlots = <T>(): Slots<T> => [undefined, undefined, undefined, undefined]

/** `body` and `format` stay as they are for the life of the version. */
export interface Value {
  /** As clients name it. */
  key: string
  /** The key of its entry: see cache.ts. */
  wireKey: string
  version: string
  /** Rises with every change, the same at all gateways: see backbone.ts. Absent while the key's node gives none. */
  order: number | undefined
  /** The highest that the backend gave to values of the key, where it hands them over. */
  rank: number | undefined
  contentType: string
  format: Format
  body: Buffer
  /** From the version before it, where the fetcher made one. */
  delta: Delta | undefined
  /** Made by the encodings, each of which reads its own alone. */
  forms: Slots<unknown>
  /** The slot of the encoding whose whole frame holds the body: it is in memory once. */
  framedBy: number | undefined
  /** That tell a client that this version is the latest. */
  currentFrames: Slots<Buffer> | undefined
  compressedBytes: number
  /** For a change: the time that it waited in the fetcher. */
  delayMs: number | undefined
  /**
   * The time at which it reached this gateway as a change, for sessions that had subscribed before; NaN if it was none.
   */
  receivedAtMs: number
}

/** What an answer says of a value. */
type Content = Omit<Extract<Answer, { type: 'value' }>, 'type' | 'ageMs' | 'maxAgeMs' | 'store' | 'next'>

/** @param key the client's key, if the answer's is a viewer key */
export function createValue(answer: Content, key: string = answer.key): Value {
  const { key: wireKey, version, order, rank, contentType, format, body, delta, delayMs } = answer
  return {
    key,
    wireKey,
    version,
    order,
    rank,
    contentType,
    format,
    body: detached(body),
    // Copied at once, even if no session takes deltas: a delta is small, and as it came it shares a block with others.
    delta: delta && { from: delta.from, bytes: detached(delta.bytes) },
    forms: emptySlots(),
    framedBy: undefined,
    currentFrames: undefined,
    compressedBytes: 0,
    delayMs,
    receivedAtMs: Number.NaN,
  }
}

/** The same value, whose frames are made anew: a client that is told too low a number may be sent an older value elsewhere. */
export const withOrder = (value: Value, order: number): Value => ({
  ...value,
  order,
  forms: emptySlots(),
  framedBy: undefined,
  currentFrames: undefined,
  compressedBytes: 0,
})

/** Whether a value is none before the one of a number. Without a number of its own nobody knows. */
export const hasReached = ({ order }: Value, reached = 0) => order === undefined || order >= reached

/** The size of a delta's frame beside the delta, as counted: its header, and a line with a usual key and two versions. */
const DELTA_LINE_BYTES = 256

/**
 * The bytes that a value counts as in the cache: its body, its form in each plain encoding, whether made yet or not,
 * and the compressed forms there are, those for HTTP among them.
 */
export function valueBytes({ format, body, delta, compressedBytes }: Value): number {
  // A text or base64 value is in memory twice once a session wants it; base64 takes 4 characters for 3 bytes.
  const jsonBytes = format === 'json' ? 0 : Math.ceil((body.length * 4) / 3)
  const deltaBytes = delta ? delta.bytes.length + DELTA_LINE_BYTES : 0
  return body.length + jsonBytes + deltaBytes + compressedBytes
}
