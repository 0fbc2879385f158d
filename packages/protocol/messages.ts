// Every message that crosses the WebSocket; those of rooms are in room-messages.ts and presence-messages.ts. No other
// file spells the name of a field.
import { errorCodes } from './codes.js'
import { excerpt } from './excerpt.ts'
import { ProtocolError, parseObject, readId, readKey, readList } from './fields.ts'
import { readJoin } from './presence-messages.ts'
import { readHistory, readPublish, readStart } from './room-messages.ts'
import { VERSION_CHARACTERS_MAX } from './version.js'

/** Text messages only. A client that offers no subprotocol gets this one too (RFC 6455 section 1.9). */
export const JSON_SUBPROTOCOL = 'keycast.v1.json'

/** `value` and `delta` are binary messages, a line of JSON and the bytes; all others are as in {@link JSON_SUBPROTOCOL}. */
export const BYTES_SUBPROTOCOL = 'keycast.v1.bytes'

/**
 * @typedef {string | number} RequestId a client puts it on a request to recognize the answer
 * @typedef {import('./codes.js').ErrorCode} ErrorCode
 * @typedef {{ key: string, version: string | undefined }} KeyAndVersion a key and the version of it the client holds
 * @typedef {KeyAndVersion & Partial<import('./room-messages.ts').RoomStart>} Wanted a key to subscribe to
 *
 * @typedef {{ type: 'get', id?: RequestId, key: string, version?: string }} Get
 * @typedef {{ type: 'subscribe', id?: RequestId, keys: Wanted[] }} Subscribe
 * @typedef {{ type: 'unsubscribe', id?: RequestId, keys: string[] }} Unsubscribe
 * @typedef {{ type: 'ping', id?: RequestId }} Ping
 * @typedef {{ type: 'auth', id?: RequestId, token: string }} Auth
 * @typedef {import('./room-messages.ts').Publish} Publish
 * @typedef {import('./room-messages.ts').History} History
 * @typedef {import('./presence-messages.ts').Join} Join
 * @typedef {import('./presence-messages.ts').Leave} Leave
 * @typedef {Get | Subscribe | Unsubscribe | Ping | Auth | Publish | History | Join | Leave} ClientMessage
 *
 * @typedef {{ messageBytes: number, keysPerSession: number, requestsPerSecond: number }} WelcomeLimits
 * @typedef {{ type: 'welcome', session: string, heartbeatMs: number, limits: WelcomeLimits, user?: string, expiresInMs?: number }} Welcome
 *   the last two where the connection was opened with a token
 * @typedef {{ type: 'authed', id?: RequestId, user: string, expiresInMs: number }} Authed
 * @typedef {{ type: 'subscribed', id?: RequestId, keys: ({ key: string } | import('./room-messages.ts').RoomSubscribed)[] }} Subscribed
 * @typedef {{ type: 'ok', id?: RequestId }} Ok
 * @typedef {{ type: 'pong', id?: RequestId, count: number }} Pong
 * @typedef {{ type: 'current', id?: RequestId, key: string, version: string }} Current
 * @typedef {{ type: 'stale', key: string, sinceMs: number, code: ErrorCode }} Stale
 * @typedef {{ type: 'error', id?: RequestId, key?: string, subscribed?: boolean, code: ErrorCode, message: string, retryAfterMs?: number }} ErrorMessage
 *   `subscribed`, with `key` always: whether the session is subscribed to it now
 * @typedef {{ type: 'closing', reconnectAfterMs: number }} Closing
 * @typedef {{ type: 'value', id?: RequestId, key: string, version: string, data?: unknown, contentType?: string, text?: string, base64?: string }} Value
 * @typedef {import('./room-messages.ts').Published} Published
 * @typedef {import('./room-messages.ts').Gap} Gap
 * @typedef {import('./presence-messages.ts').Joined} Joined
 * @typedef {import('./presence-messages.ts').Members} Members
 * @typedef {import('./presence-messages.ts').Presence} Presence
 * @typedef {Welcome | Authed | Subscribed | Ok | Pong | Current | Stale | ErrorMessage | Closing | Published | Gap
 *   | Joined | Members | Presence} ControlMessage
 *   what the gateway encodes whole
 * @typedef {import('./room-messages.ts').Message} Message
 * @typedef {import('./room-messages.ts').HistoryAnswer} HistoryAnswer
 * @typedef {ControlMessage | Value | Message | HistoryAnswer} ServerMessage in `keycast.v1.json`
 *
 * In `keycast.v1.bytes` these two are lines with the bytes behind them: of the content, or of a fossil delta from the
 * version `from` to it.
 * @typedef {{ type: 'value', id?: RequestId, key: string, version: string, contentType: string }} BytesValue
 * @typedef {{ type: 'delta', key: string, from: string, version: string, contentType: string }} BytesDelta
 */

/**
 * Reads one client message and checks its shape. Whether its keys are well-formed is not decided here: each key is
 * answered on its own, see `keyProblem`.
 *
 * @param {string} text
 * @returns {ClientMessage}
 * @throws {ProtocolError} `bad_message` or `unknown_type`
 */
export function readClientMessage(text) {
  const message = parseObject(text)
  const id = readId(message.id)
  switch (message.type) {
    case 'get':
      return { type: 'get', id, ...readKeyAndVersion(message, id) }
    case 'subscribe':
      return { type: 'subscribe', id, keys: readList(message.keys, id).map(entry => readSubscribed(entry, id)) }
    case 'unsubscribe':
      return { type: 'unsubscribe', id, keys: readList(message.keys, id).map(key => readKey(key, id)) }
    case 'ping':
      return { type: 'ping', id }
    case 'auth':
      return { type: 'auth', id, token: readToken(message.token, id) }
    case 'publish':
      return readPublish(message, text, id)
    case 'history':
      return readHistory(message, id)
    case 'join':
      return readJoin(message, id)
    case 'leave':
      return { type: 'leave', id, key: readKey(message.key, id) }
    case undefined:
      throw new ProtocolError('bad_message', 'the field "type" is missing', id)
    default:
      throw new ProtocolError('unknown_type', `no message has the type ${excerpt(message.type)}`, id)
  }
}

/**
 * The id of a request that is refused unread, so that the client knows which request failed.
 *
 * @param {string} text
 * @returns {RequestId | undefined} `undefined` if it has none, or none that can be sent back
 */
export function readRequestId(text) {
  try {
    return readId(parseObject(text).id)
  } catch {
    return undefined
  }
}

/**
 * The text of any message but a value: for those see {@link valueHead}.
 *
 * @param {ControlMessage} message
 */
export function encode(message) {
  return JSON.stringify(message)
}

/**
 * An `error` message. Its text is the code's own unless another says more.
 *
 * @param {ErrorCode} code
 * @param {Partial<Omit<ErrorMessage, 'type' | 'code'>>} [rest]
 * @returns {ErrorMessage}
 */
export function errorMessage(code, { id, key, subscribed, message = errorCodes[code], retryAfterMs } = {}) {
  return { type: 'error', id, key, subscribed, code, message, retryAfterMs }
}

/**
 * The part of a value before its body. The body follows as bytes (`json` as it came from the backend), then
 * {@link VALUE_TAIL}. So all sessions and every `get` share one encoded body.
 *
 * @param {{ id?: RequestId, key: string, version: string, contentType: string, format: 'json' | 'text' | 'base64' }} head
 */
export function valueHead({ id, key, version, contentType, format }) {
  const type = format === 'json' ? undefined : contentType
  const fields = JSON.stringify({ type: 'value', id, key, version, contentType: type })
  return `${fields.slice(0, -1)},"${format === 'json' ? 'data' : format}":`
}

/** The part of a value after its body. */
export const VALUE_TAIL = '}'

/**
 * The line before a value's bytes in `keycast.v1.bytes`.
 *
 * @param {Omit<BytesValue, 'type'>} head
 */
export function valueLine({ id, key, version, contentType }) {
  return line({ type: 'value', id, key, version, contentType })
}

/**
 * The line before a delta's bytes.
 *
 * @param {Omit<BytesDelta, 'type'>} head
 */
export function deltaLine({ key, from, version, contentType }) {
  return line({ type: 'delta', key, from, version, contentType })
}

/** Encoded JSON without white space holds no line feed, so the first one ends the line. @param {BytesValue | BytesDelta} head */
function line(head) {
  return `${JSON.stringify(head)}\n`
}

/** @param {Record<string, unknown>} source @param {RequestId} [id] @returns {KeyAndVersion} */
function readKeyAndVersion({ key, version }, id) {
  if (version !== undefined && (typeof version !== 'string' || version.length > VERSION_CHARACTERS_MAX)) {
    throw new ProtocolError(
      'bad_message',
      `"version" must be a string of at most ${VERSION_CHARACTERS_MAX} characters`,
      id,
    )
  }
  return { key: readKey(key, id), version }
}

/** @param {unknown} entry @param {RequestId} [id] @returns {Wanted} */
function readSubscribed(entry, id) {
  if (typeof entry === 'object' && entry !== null && !Array.isArray(entry)) {
    const fields = /** @type {Record<string, unknown>} */ (entry)
    const start = readStart(fields, id)
    // A message may name thousands of values: these get no fields that only rooms have.
    return start ? { ...readKeyAndVersion(fields, id), ...start } : readKeyAndVersion(fields, id)
  }
  return { key: readKey(entry, id), version: undefined }
}

/** The token is verified elsewhere. No message sends it back. @param {unknown} token @param {RequestId} [id] */
function readToken(token, id) {
  if (typeof token !== 'string') throw new ProtocolError('bad_message', '"token" must be a string', id)
  return token
}
