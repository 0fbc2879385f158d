// Every message that crosses the WebSocket; those of rooms are in room-messages.ts and presence-messages.ts. No other
// file spells the name of a field.
import type { ErrorCode } from './codes.js'
import { excerpt } from './excerpt.ts'
import { bad, ProtocolError, parseObject, readId, readKey, readList } from './fields.ts'
import { type Join, type Joined, type Leave, type Members, type Presence, readJoin } from './presence-messages.ts'
import { type Problem, problemText, retryAfterMsOf } from './problem.ts'
import {
  type Gap,
  type History,
  type HistoryAnswer,
  isCount,
  type Message,
  type Publish,
  type Published,
  type RoomStart,
  type RoomSubscribed,
  readHistory,
  readPublish,
  readStart,
} from './room-messages.ts'
import { VERSION_CHARACTERS_MAX } from './version.js'

/** Text messages only. A client that offers no subprotocol gets this one too (RFC 6455 section 1.9). */
export const JSON_SUBPROTOCOL = 'keycast.v1.json'

/** `value` and `delta` are binary messages, a line of JSON and the bytes; all others are as in {@link JSON_SUBPROTOCOL}. */
export const BYTES_SUBPROTOCOL = 'keycast.v1.bytes'

/** A client puts it on a request to recognize the answer. */
export type RequestId = string | number

/** A key and the version of it the client holds. */
interface KeyAndVersion {
  key: string
  version: string | undefined
}

/** A key to subscribe to. `order`: of the version that the client was sent last: nothing older is sent. */
export type Wanted = KeyAndVersion & { order?: number } & Partial<RoomStart>

export interface Get {
  type: 'get'
  id?: RequestId
  key: string
  version?: string
}

export interface Subscribe {
  type: 'subscribe'
  id?: RequestId
  keys: Wanted[]
}

export interface Unsubscribe {
  type: 'unsubscribe'
  id?: RequestId
  keys: string[]
}

export interface Ping {
  type: 'ping'
  id?: RequestId
}

export interface Auth {
  type: 'auth'
  id?: RequestId
  token: string
}

export type ClientMessage = Get | Subscribe | Unsubscribe | Ping | Auth | Publish | History | Join | Leave

interface WelcomeLimits {
  messageBytes: number
  keysPerSession: number
  requestsPerSecond: number
}

/** The last two where the connection was opened with a token. */
interface Welcome {
  type: 'welcome'
  session: string
  heartbeatMs: number
  limits: WelcomeLimits
  user?: string
  expiresInMs?: number
}

interface Authed {
  type: 'authed'
  id?: RequestId
  user: string
  expiresInMs: number
}

interface Subscribed {
  type: 'subscribed'
  id?: RequestId
  keys: ({ key: string } | RoomSubscribed)[]
}

interface Ok {
  type: 'ok'
  id?: RequestId
}

interface Pong {
  type: 'pong'
  id?: RequestId
  count: number
}

/** `order`, here and in values: rises with every change, the same at all gateways. */
interface Current {
  type: 'current'
  id?: RequestId
  key: string
  version: string
  order?: number
}

interface Stale {
  type: 'stale'
  key: string
  sinceMs: number
  code: ErrorCode
}

/** `subscribed`, with `key` always: whether the session is subscribed to it now. */
export interface ErrorMessage {
  type: 'error'
  id?: RequestId
  key?: string
  subscribed?: boolean
  code: ErrorCode
  message: string
  retryAfterMs?: number
  reason?: string
}

interface Closing {
  type: 'closing'
  reconnectAfterMs: number
}

export interface Value {
  type: 'value'
  id?: RequestId
  key: string
  version: string
  order?: number
  data?: unknown
  contentType?: string
  text?: string
  base64?: string
}

/** What the gateway encodes whole. */
export type ControlMessage =
  | Welcome
  | Authed
  | Subscribed
  | Ok
  | Pong
  | Current
  | Stale
  | ErrorMessage
  | Closing
  | Published
  | Gap
  | Joined
  | Members
  | Presence

/** In `keycast.v1.json`. */
export type ServerMessage = ControlMessage | Value | Message | HistoryAnswer

/**
 * In `keycast.v1.bytes` these two are lines with the bytes behind them: of the content, or of a fossil delta from the
 * version `from` to it.
 */
export interface BytesValue {
  type: 'value'
  id?: RequestId
  key: string
  version: string
  order?: number
  contentType: string
}

export interface BytesDelta {
  type: 'delta'
  key: string
  from: string
  version: string
  order?: number
  contentType: string
}

/**
 * Reads one client message and checks its shape. Whether its keys are well-formed is not decided here: each key is
 * answered on its own, see `keyProblem`.
 *
 * @throws {ProtocolError} `bad_message` or `unknown_type`
 */
export function readClientMessage(text: string): ClientMessage {
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
      throw bad('the field "type" is missing', id)
    default:
      throw new ProtocolError('unknown_type', `no message has the type ${excerpt(message.type)}`, id)
  }
}

/** A longer request that is refused is not parsed: that may take longer than to answer it. */
const PARSED_CHARACTERS_MAX = 1_024

/** How clients begin a request. */
const startGrammar = /^\s*\{\s*(?:"type"\s*:\s*"\w*"\s*,\s*)?"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,/

/**
 * The id of a request that is refused unread, so that the client knows which request failed.
 *
 * @returns `undefined` if it has none, or none that can be sent back, or if it is long and has it behind other fields
 */
export function readRequestId(text: string): RequestId | undefined {
  try {
    if (text.length <= PARSED_CHARACTERS_MAX) return readId(parseObject(text).id)
    const [, id] = startGrammar.exec(text.slice(0, PARSED_CHARACTERS_MAX)) ?? []
    return id === undefined ? undefined : readId(JSON.parse(id))
  } catch {
    return undefined
  }
}

/** The text of any message but a value: for those see {@link valueHead}. */
export function encode(message: ControlMessage) {
  return JSON.stringify(message)
}

/** The `error` message that tells a client of a problem. */
export function errorMessage(
  problem: Problem,
  { id, key, subscribed }: { id?: RequestId; key?: string; subscribed?: boolean } = {},
): ErrorMessage {
  const { code, reason } = problem
  const retryAfterMs = retryAfterMsOf(problem)
  return { type: 'error', id, key, subscribed, code, message: problemText(problem), retryAfterMs, reason }
}

/**
 * The part of a value before its body. The body follows as bytes (`json` as it came from the backend), then
 * {@link VALUE_TAIL}. So all sessions and every `get` share one encoded body.
 */
export function valueHead({
  id,
  key,
  version,
  order,
  contentType,
  format,
}: {
  id?: RequestId
  key: string
  version: string
  order?: number
  contentType: string
  format: 'json' | 'text' | 'base64'
}) {
  const type = format === 'json' ? undefined : contentType
  const fields = JSON.stringify({ type: 'value', id, key, version, order, contentType: type })
  return `${fields.slice(0, -1)},"${format === 'json' ? 'data' : format}":`
}

/** The part of a value after its body. */
export const VALUE_TAIL = '}'

/** The line before a value's bytes in `keycast.v1.bytes`. */
export function valueLine({ id, key, version, order, contentType }: Omit<BytesValue, 'type'>) {
  return line({ type: 'value', id, key, version, order, contentType })
}

/** The line before a delta's bytes. */
export function deltaLine({ key, from, version, order, contentType }: Omit<BytesDelta, 'type'>) {
  return line({ type: 'delta', key, from, version, order, contentType })
}

/** Encoded JSON without white space holds no line feed, so the first one ends the line. */
function line(head: BytesValue | BytesDelta) {
  return `${JSON.stringify(head)}\n`
}

function readKeyAndVersion({ key, version }: Record<string, unknown>, id?: RequestId): KeyAndVersion {
  if (version !== undefined && (typeof version !== 'string' || version.length > VERSION_CHARACTERS_MAX)) {
    throw bad(`"version" must be a string of at most ${VERSION_CHARACTERS_MAX} characters`, id)
  }
  return { key: readKey(key, id), version }
}

function readSubscribed(entry: unknown, id?: RequestId): Wanted {
  if (typeof entry === 'object' && entry !== null && !Array.isArray(entry)) {
    const fields = entry as Record<string, unknown>
    const wanted: Wanted = readKeyAndVersion(fields, id)
    // A message may name thousands of values: these get no fields that they do not use.
    if (fields.order !== undefined) wanted.order = readOrder(fields.order, id)
    const start = readStart(fields, id)
    return start ? { ...wanted, ...start } : wanted
  }
  return { key: readKey(entry, id), version: undefined }
}

function readOrder(order: unknown, id?: RequestId) {
  if (isCount(order)) return order
  throw bad('"order" must be a whole number from 0 to 2^53 - 1', id)
}

/** The token is verified elsewhere. No message sends it back. */
function readToken(token: unknown, id?: RequestId) {
  if (typeof token !== 'string') throw bad('"token" must be a string', id)
  return token
}
