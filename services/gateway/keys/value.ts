// One version of a key's value, with room for what each encoding makes of it once for all sessions.
import { detached } from '@keycast/service'
import { emptySlots } from '../encodings/slots.ts'

/**
 * @typedef {import('@keycast/backbone').Delta} Delta
 * @typedef {import('@keycast/backbone').Format} Format
 *
 * `body` is the content itself; `format` says how it may be shown. Both stay as they are for the life of the version.
 * @typedef {object} Value
 * @property {string} key that clients know
 * @property {string} wireKey the key of its entry: see entry.ts
 * @property {string} version
 * @property {string} contentType
 * @property {Format} format
 * @property {Buffer} body
 * @property {Delta | undefined} delta from the version before it, where the fetcher made one
 * @property {import('../encodings/slots.ts').Slots<unknown>} forms made by the encodings, each of which reads its own alone
 * @property {import('../encodings/slots.ts').Slots<Buffer> | undefined} currentFrames that tell a client that this version is the latest
 * @property {number} compressedBytes the size of its compressed forms
 * @property {number | undefined} delayMs for a change: the time that it waited in the fetcher
 * @property {number} receivedAtMs the time at which it reached this gateway as a change, for sessions that had
 *   subscribed before; NaN if it was none
 */

/**
 * @param {{ key: string, version: string, contentType: string, format: Format, body: Buffer, delta?: Delta, delayMs?: number }} answer
 * @param {string} [key] the client's key, if the answer's is a viewer key
 * @returns {Value}
 */
export function createValue({ key: wireKey, version, contentType, format, body, delta, delayMs }, key = wireKey) {
  return {
    key,
    wireKey,
    version,
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
