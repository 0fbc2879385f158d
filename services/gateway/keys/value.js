// One version of a key's value, and what is made of it once for every session that gets it.
import { bytesStart, deltaFrame } from '../encodings/bytes.js'
import { encodeJson } from '../encodings/json.js'

/**
 * @typedef {import('@keycast/backbone').Delta} Delta
 * @typedef {import('@keycast/backbone').Format} Format
 * @typedef {import('../encodings/json.js').Encoded} Encoded
 *
 * What a `keycast.v1.bytes` session that holds the version `from` is sent in place of the value: one whole frame.
 * @typedef {{ from: string, frame: Buffer }} DeltaFrame
 *
 * `body` is the content itself; `format` says how it may be shown. Both stay as they are for the life of the version.
 * @typedef {object} Value
 * @property {string} key
 * @property {string} version
 * @property {string} contentType
 * @property {Format} format
 * @property {Buffer} body
 * @property {Encoded | undefined} json what `keycast.v1.json` sessions are sent, see {@link jsonOf}
 * @property {Buffer | undefined} start what stands before `body` for `keycast.v1.bytes` sessions, see {@link startOf}
 * @property {import('../encodings/compressed.js').Deflated | undefined} deflatedJson either, compressed; compression.js
 * @property {import('../encodings/compressed.js').Deflated | undefined} deflatedBytes
 * @property {DeltaFrame | undefined} delta from the version before it, where the fetcher made one
 * @property {number} cameAtMs when it came to those who had subscribed before; NaN where nobody had
 * @property {Buffer | undefined} current the frame that tells a session it holds this version
 */

/**
 * Parts received by ZeroMQ up to 8 KB share a block, which one kept part keeps alive: bodies up to this many bytes are
 * copied out of it. Above, the copy costs more than what it could set free.
 */
const COPY_BYTES_MAX = 16 * 1024

/**
 * @param {{ key: string, version: string, contentType: string, format: Format, body: Buffer, delta?: Delta }} answer
 * @returns {Value}
 */
export function createValue({ key, version, contentType, format, body, delta }) {
  return {
    key,
    version,
    contentType,
    format,
    body: keepable(body),
    json: undefined,
    start: undefined,
    deflatedJson: undefined,
    deflatedBytes: undefined,
    // At once, also where nobody speaks bytes: a delta is small, and as it came it shares a block with others.
    delta: delta && { from: delta.from, frame: keepable(deltaFrame({ key, version, contentType }, delta)) },
    cameAtMs: Number.NaN,
    current: undefined,
  }
}

/**
 * The value in the form of `keycast.v1.json`, built when the first session needs it.
 *
 * @param {Value} value
 * @returns {Encoded}
 */
export function jsonOf(value) {
  if (value.json) return value.json
  value.json = encodeJson(value)
  // The frame holds the same bytes: looking at them there lets go of the body as it was received.
  if (value.format === 'json') value.body = value.json.rest.subarray(0, value.body.length)
  return value.json
}

/**
 * What `keycast.v1.bytes` sessions are sent before the value's body, built when the first of them needs it.
 *
 * @param {Value} value
 */
export function startOf(value) {
  value.start ??= keepable(bytesStart(value))
  return value.start
}

/**
 * What a value is counted as in the cache: its body and the largest form built from it, whether built yet or not, and
 * what is held of it compressed.
 *
 * @param {Pick<Value, 'format' | 'body' | 'deflatedJson' | 'deflatedBytes' | 'delta'>} value
 */
export function valueBytes({ format, body, deflatedJson, deflatedBytes, delta }) {
  // A text or base64 value is held twice once a JSON session wants it; base64 takes 4 characters for 3 bytes.
  const plain = format === 'json' ? body.length : body.length + Math.ceil((body.length * 4) / 3)
  return plain + (delta?.frame.length ?? 0) + (deflatedJson?.rest?.length ?? 0) + (deflatedBytes?.rest?.length ?? 0)
}

/** Bytes to be kept, in memory of their own where they are few. @param {Buffer} body */
export function keepable(body) {
  if (body.length > COPY_BYTES_MAX) return body
  // Not from Node's pool: there too a small slice would keep its 8 KB block.
  const copy = Buffer.allocUnsafeSlow(body.length)
  body.copy(copy)
  return copy
}
