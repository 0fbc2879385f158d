// One version of a key's value, with room for what each encoding makes of it once for all sessions.
import type { Delta, Format } from '@keycast/backbone'
import { detached } from '@keycast/service'
import { emptySlots, type Slots } from '../../encodings/slots.ts'

/**
 * `body` is the content itself; `format` says how it may be shown. Both stay as they are for the life of the version.
 */
export interface Value {
  /** That clients know. */
  key: string
  /** The key of its entry: see entry.ts. */
  wireKey: string
  version: string
  /** Rises with every change, the same at all gateways: see backbone.ts. Absent while the key's node gives none. */
  order: number | undefined
  contentType: string
  format: Format
  body: Buffer
  /** From the version before it, where the fetcher made one. */
  delta: Delta | undefined
  /** Made by the encodings, each of which reads its own alone. */
  forms: Slots<unknown>
  /** That tell a client that this version is the latest. */
  currentFrames: Slots<Buffer> | undefined
  /** The size of its compressed forms. */
  compressedBytes: number
  /** For a change: the time that it waited in the fetcher. */
  delayMs: number | undefined
  /**
   * The time at which it reached this gateway as a change, for sessions that had subscribed before; NaN if it was none.
   */
  receivedAtMs: number
}

/** @param key the client's key, if the answer's is a viewer key */
export function createValue(
  {
    key: wireKey,
    version,
    order,
    contentType,
    format,
    body,
    delta,
    delayMs,
  }: {
    key: string
    version: string
    order?: number
    contentType: string
    format: Format
    body: Buffer
    delta?: Delta
    delayMs?: number
  },
  key: string = wireKey,
): Value {
  return {
    key,
    wireKey,
    version,
    order,
    contentType,
    format,
    body: detached(body),
    // Copied at once, even if no session takes deltas: a delta is small, and as it came it shares a block with others.
    delta: delta && { from: delta.from, bytes: detached(delta.bytes) },
    forms: emptySlots(),
    currentFrames: undefined,
    compressedBytes: 0,
    delayMs,
    receivedAtMs: Number.NaN,
  }
}
