// Values on the wire: positions are the versions that gateways hold, answers are states of keys, and the one notice is a refresh.
import { errorCodes } from '@keycast/protocol'
import { readKey, WireError } from './codec.js'

/**
 * @typedef {import('../backbone.js').Answer} Answer
 * @typedef {import('../backbone.js').Held} Held
 *
 * The backend's content changed: ask it now. At most KEYS_PER_REQUEST_MAX keys.
 * @typedef {{ type: 'refresh', keys: string[] }} RefreshNotice
 *
 * @typedef {{ Position: Held, Payload: never, Answer: Answer, Notice: RefreshNotice, Command: never, Result: never,
 *   Heads: never }} Values
 */

const formats = new Set(['json', 'text', 'base64'])

/** Stands for an error code of a newer fetcher; the answer's `message` still says what happened. */
const GENERAL_CODE = 'backend_error'

/** Stands for a format of a newer fetcher: bytes can always be given as bytes. */
const GENERAL_FORMAT = 'base64'

/** @type {import('./codec.js').Codec<Values>} */
export const valuesCodec = {
  wire: 'values/1.0',
  readPosition(head) {
    const { version, ageMs } = head ?? {}
    if (typeof version !== 'string' || !isAge(ageMs)) throw new WireError('a position is not a version and its age')
    return { version, ageMs }
  },
  encodeAnswer(answer) {
    if (answer.type !== 'value') return { head: answer, parts: [] }
    const { body, delta, ...head } = answer
    if (!delta) return { head, parts: [body] }
    return { head: { ...head, deltaFrom: delta.from }, parts: [body, delta.bytes] }
  },
  decodeAnswer(head, parts) {
    const { type, key } = head ?? {}
    readKey(key)
    switch (type) {
      case 'value':
        return readValue(head, parts)
      case 'current':
        return isKept(head) ? head : incomplete(key)
      case 'failed':
        return readFailed(head)
      default:
        return undefined
    }
  },
  readNotice(head) {
    const { type, keys } = head ?? {}
    if (type !== 'refresh') return undefined
    if (!Array.isArray(keys)) throw new WireError('a refresh names no keys')
    return { type, keys: keys.map(readKey) }
  },
}

/** @param {any} head @param {Buffer[]} parts @returns {Answer} */
function readValue({ deltaFrom, ...head }, [body, delta]) {
  if (!isKept(head) || !body || typeof head.contentType !== 'string' || typeof head.format !== 'string') {
    return incomplete(head.key)
  }
  const value = { ...head, body }
  if (!formats.has(head.format)) value.format = GENERAL_FORMAT
  if (deltaFrom === undefined) return value
  if (typeof deltaFrom !== 'string' || !delta) return incomplete(head.key)
  value.delta = { from: deltaFrom, bytes: delta }
  return value
}

/** @param {any} head @returns {Answer} */
function readFailed(head) {
  if (!isAged(head) || typeof head.code !== 'string') return incomplete(head.key)
  return Object.hasOwn(errorCodes, head.code) ? head : { ...head, code: GENERAL_CODE }
}

/** @param {any} head */
const isKept = head =>
  isAged(head) && typeof head.version === 'string' && head.maxAgeMs !== undefined && typeof head.store === 'boolean'

/** @param {any} head */
const isAged = ({ ageMs, maxAgeMs }) => isAge(ageMs) && (maxAgeMs === undefined || isAge(maxAgeMs))

/** @param {unknown} ageMs */
const isAge = ageMs => typeof ageMs === 'number' && ageMs >= 0

/** @param {string} key @returns {never} */
function incomplete(key) {
  throw new WireError(`the answer for ${key} is incomplete`)
}
