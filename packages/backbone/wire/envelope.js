// The messages between gateways and fetcher nodes: their bytes, and the checks of whoever receives them.
// docs/backbone.md shows each with an example.
//
// direction           socket           message
// gateway → hub       PUSH → PULL      watch, unwatch, fetch, cancel, refresh: one JSON part
// gateway → hub       DEALER → ROUTER  beat, taken, bye: one JSON part
// hub → gateway       ROUTER → DEALER  beat, resync, bye: one JSON part
// hub → gateway       ROUTER → DEALER  answers: a JSON part, then for each value, in order, a part with its body
//                                      and, where its head has `deltaFrom`, one with the delta
import { errorCodes } from '@keycast/protocol'

/**
 * @typedef {import('../backbone.js').Answer} Answer
 * @typedef {import('../backbone.js').Want} Want
 *
 * What is wanted; `number` runs from 1 without a gap within a link.
 * @typedef {{ type: 'watch' | 'fetch', link: string, number: number, wants: Want[] }} WantRequest
 * @typedef {{ type: 'unwatch' | 'cancel' | 'refresh', link: string, number: number, keys: string[] }} KeysRequest
 * @typedef {WantRequest | KeysRequest} Request
 *
 * `number`: requests sent so far. `taken`: bytes of answers received so far.
 * @typedef {{ type: 'beat', link: string, number: number, taken: number }} LinkBeat
 * @typedef {{ type: 'taken', link: string, taken: number }} Taken
 * @typedef {LinkBeat | Taken | Bye} FromLink
 *
 * `reached`: requests received so far. `answered`: messages of answers sent so far.
 * @typedef {{ type: 'beat', link: string, reached: number, answered: number }} HubBeat
 * @typedef {{ type: 'resync', link: string }} Resync
 * @typedef {{ type: 'bye', link: string }} Bye
 * @typedef {{ type: 'answers', link: string, number: number, reached: number, answers: Answer[] }} Answers
 * @typedef {HubBeat | Resync | Bye | Answers} FromHub
 */

/** A message that is not what this file says; the peer is of another version, or the bytes were damaged. */
export class WireError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message)
    this.name = 'WireError'
  }
}

/** Keys in one request: at 330 bytes a want at most, far below the 1 MiB a hub accepts. */
export const KEYS_PER_REQUEST_MAX = 500

/** Bytes of a request a hub accepts: 500 wants of 255-character ids need a third of it. */
export const REQUEST_BYTES_MAX = 2 ** 20

const formats = new Set(['json', 'text', 'base64'])

/** @param {Request | LinkBeat | Taken | HubBeat | Resync | Bye} message */
export function encodeMessage(message) {
  return Buffer.from(JSON.stringify(message))
}

/**
 * @param {{ link: string, number: number, reached: number }} envelope
 * @param {Answer[]} answers
 * @returns {Buffer[]} the parts; bodies are passed on, not copied
 */
export function encodeAnswers({ link, number, reached }, answers) {
  const bodies = []
  const heads = []
  for (const answer of answers) {
    if (answer.type === 'value') {
      const { body, delta, ...head } = answer
      bodies.push(body)
      if (delta) bodies.push(delta.bytes)
      heads.push(delta ? { ...head, deltaFrom: delta.from } : head)
    } else {
      heads.push(answer)
    }
  }
  return [Buffer.from(JSON.stringify({ type: 'answers', link, number, reached, answers: heads })), ...bodies]
}

/**
 * @param {Buffer} part
 * @returns {Request}
 * @throws {WireError}
 */
export function decodeRequest(part) {
  const { type, link, number, wants, keys } = parse(part)
  checkLink(link)
  checkCount('number', number)
  switch (type) {
    case 'watch':
    case 'fetch':
      return { type, link, number, wants: list(type, wants).map(readWant) }
    case 'unwatch':
    case 'cancel':
    case 'refresh':
      return { type, link, number, keys: list(type, keys).map(readKey) }
    default:
      throw new WireError(`no request has the type ${JSON.stringify(type)}`)
  }
}

/**
 * @param {Buffer} part
 * @returns {FromLink}
 * @throws {WireError}
 */
export function decodeBeat(part) {
  const { type, link, number, taken } = parse(part)
  checkLink(link)
  if (type === 'bye') return { type, link }
  checkCount('taken', taken)
  if (type === 'taken') return { type, link, taken }
  if (type !== 'beat') throw new WireError(`a hub is sent no ${JSON.stringify(type)}`)
  checkCount('number', number)
  return { type, link, number, taken }
}

/**
 * @param {Buffer[]} parts
 * @returns {FromHub}
 * @throws {WireError}
 */
export function decodeFromHub(parts) {
  const { type, link, reached, answered, number, answers } = parse(parts[0])
  checkLink(link)
  switch (type) {
    case 'resync':
    case 'bye':
      return { type, link }
    case 'beat':
      checkCount('reached', reached)
      checkCount('answered', answered)
      return { type, link, reached, answered }
    case 'answers': {
      checkCount('number', number)
      checkCount('reached', reached)
      let next = 1
      const read = list(type, answers).map(head => readAnswer(head, () => parts[next++]))
      if (next !== parts.length) throw new WireError(`answers came with ${parts.length - next} parts too many`)
      return { type, link, number, reached, answers: read }
    }
    default:
      throw new WireError(`a gateway is sent no ${JSON.stringify(type)}`)
  }
}

/** @param {Buffer} part @returns {Record<string, any>} */
function parse(part) {
  let parsed
  try {
    parsed = JSON.parse(part.toString())
  } catch {
    throw new WireError('a message is no JSON')
  }
  if (typeof parsed !== 'object' || parsed === null) throw new WireError('a message is no JSON object')
  return parsed
}

/** @param {unknown} link */
function checkLink(link) {
  if (typeof link !== 'string' || link.length === 0 || link.length > 64) throw new WireError('a message names no link')
}

/** @param {string} name @param {unknown} value */
function checkCount(name, value) {
  if (!Number.isSafeInteger(value) || /** @type {number} */ (value) < 0) {
    throw new WireError(`"${name}" is no count: ${JSON.stringify(value)}`)
  }
}

/** @param {string} type @param {unknown} value @returns {any[]} */
function list(type, value) {
  if (!Array.isArray(value)) throw new WireError(`${type} comes with no list`)
  return value
}

/** @param {unknown} key */
function readKey(key) {
  if (typeof key !== 'string') throw new WireError(`a key is no string: ${JSON.stringify(key)}`)
  return key
}

/** @param {any} want @returns {Want} */
function readWant(want) {
  const { key, held } = want ?? {}
  readKey(key)
  if (held !== undefined && (typeof held?.version !== 'string' || !isAge(held.ageMs))) {
    throw new WireError(`what is held of ${key} is not a version and its age`)
  }
  return { key, held }
}

/** @param {any} head @param {() => Buffer | undefined} nextPart @returns {Answer} */
function readAnswer(head, nextPart) {
  const { type, key, version, ageMs, maxAgeMs, store, contentType, format, code } = head ?? {}
  readKey(key)
  const whole = isAge(ageMs) && (maxAgeMs === undefined || isAge(maxAgeMs))
  if (type === 'failed' && whole && Object.hasOwn(errorCodes, code)) return head
  const kept = whole && typeof version === 'string' && maxAgeMs !== undefined && typeof store === 'boolean'
  if (type === 'current' && kept) return head
  if (type === 'value' && kept && typeof contentType === 'string' && formats.has(format)) {
    const { deltaFrom, ...rest } = head
    const body = nextPart()
    if (body && deltaFrom === undefined) return { ...rest, body }
    const bytes = nextPart()
    if (body && bytes && typeof deltaFrom === 'string') return { ...rest, body, delta: { from: deltaFrom, bytes } }
  }
  throw new WireError(`the answer for ${key} is incomplete`)
}

/** @param {unknown} ageMs */
function isAge(ageMs) {
  return typeof ageMs === 'number' && ageMs >= 0
}
