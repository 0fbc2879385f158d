// Reads the fields that requests share, and names a wrong one.

/**
 * @typedef {import('./messages.ts').RequestId} RequestId
 * @typedef {import('./codes.js').ErrorCode} ErrorCode
 */

/** Longest string id. Answers echo it, so a long one would multiply what a client makes the gateway send. */
export const REQUEST_ID_CHARACTERS_MAX = 128

/** A client's message breaks the protocol. Carries what the `error` answer needs. */
export class ProtocolError extends Error {
  /**
   * @param {ErrorCode} code
   * @param {string} message names the remedy
   * @param {RequestId} [id] the request's id, if it could be read
   */
  constructor(code, message, id) {
    super(message)
    this.name = 'ProtocolError'
    this.code = code
    this.id = id
  }
}

/** @param {string} text @returns {Record<string, unknown>} */
export function parseObject(text) {
  let parsed
  try {
    parsed = JSON.parse(text)
  } catch {
    throw new ProtocolError('bad_message', 'a message must be one JSON object')
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new ProtocolError('bad_message', 'a message must be one JSON object')
  }
  return parsed
}

/** @param {unknown} id @returns {RequestId | undefined} */
export function readId(id) {
  if (id === undefined) return undefined
  // A larger integer would come back as another one.
  if (typeof id === 'number' && Math.abs(id) <= Number.MAX_SAFE_INTEGER) return id
  if (typeof id === 'string' && id.length <= REQUEST_ID_CHARACTERS_MAX) return id
  throw new ProtocolError(
    'bad_message',
    `"id" must be a number up to 2^53 - 1 or a string of at most ${REQUEST_ID_CHARACTERS_MAX} characters`,
  )
}

/** @param {unknown} key @param {RequestId} [id] */
export function readKey(key, id) {
  if (typeof key !== 'string') throw new ProtocolError('bad_message', 'a key must be a string', id)
  return key
}

/** @param {unknown} keys @param {RequestId} [id] @returns {unknown[]} */
export function readList(keys, id) {
  if (!Array.isArray(keys) || keys.length === 0) {
    throw new ProtocolError('bad_message', '"keys" must be a list of at least one key', id)
  }
  return keys
}
