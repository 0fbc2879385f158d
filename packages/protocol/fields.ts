// Reads the fields that requests share, and names a wrong one.
import type { ErrorCode } from './codes.js'
import type { RequestId } from './messages.ts'

/** Longest string id. Answers echo it, so a long one would multiply what a client makes the gateway send. */
export const REQUEST_ID_CHARACTERS_MAX = 128

/** A client's message breaks the protocol. Carries what the `error` answer needs. */
export class ProtocolError extends Error {
  readonly code: ErrorCode
  readonly id: RequestId | undefined

  /**
   * @param message names the remedy
   * @param id the request's id, if it could be read
   */
  constructor(code: ErrorCode, message: string, id?: RequestId) {
    super(message)
    this.name = 'ProtocolError'
    this.code = code
    this.id = id
  }
}

export const bad = (message: string, id?: RequestId) => new ProtocolError('bad_message', message, id)

export function parseObject(text: string): Record<string, unknown> {
  let parsed
  try {
    parsed = JSON.parse(text)
  } catch {
    throw bad('a message must be one JSON object')
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw bad('a message must be one JSON object')
  }
  return parsed
}

export function readId(id: unknown): RequestId | undefined {
  if (id === undefined) return undefined
  // A larger integer would come back as another one.
  if (typeof id === 'number' && Math.abs(id) <= Number.MAX_SAFE_INTEGER) return id
  if (typeof id === 'string' && id.length <= REQUEST_ID_CHARACTERS_MAX) return id
  throw bad(`"id" must be a number up to 2^53 - 1 or a string of at most ${REQUEST_ID_CHARACTERS_MAX} characters`)
}

export function readKey(key: unknown, id?: RequestId) {
  if (typeof key !== 'string') throw bad('a key must be a string', id)
  return key
}

export function readList(keys: unknown, id?: RequestId): unknown[] {
  if (!Array.isArray(keys) || keys.length === 0) {
    throw bad('"keys" must be a list of at least one key', id)
  }
  return keys
}
