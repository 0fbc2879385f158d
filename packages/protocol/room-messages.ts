// The messages of rooms: a client's requests, and the messages that it is sent.
import { ProtocolError, parseObject, readKey } from './fields.ts'
import { rawMember } from './raw-json.ts'
import { isUser, USER_CHARACTERS_MAX } from './users.ts'

/**
 * @typedef {import('./messages.ts').RequestId} RequestId
 *
 * A place in a room's order. `seq` counts 1, 2, 3 … within an epoch; another epoch is another history.
 * @typedef {{ epoch: string, seq: number }} Position
 *
 * Where a subscription to a room begins: after a position, or with the last few messages; with neither it begins now.
 * `presence`: who is there is wanted as well.
 * @typedef {{ after: Position | undefined, last: number | undefined, presence: boolean }} RoomStart
 *
 * A room in `subscribed`: its head, its first message still held, and what follows at once. `recovered`: that is every
 * message after the position named.
 * @typedef {{ key: string, epoch: string, seq: number, oldest: number, recovered: boolean, count: number }} RoomSubscribed
 *
 * `data` is the JSON text as it was sent.
 * @typedef {{ type: 'publish', id?: RequestId, key: string, messageId?: string, data: string }} Publish
 * @typedef {{ type: 'published', id?: RequestId, key: string, epoch: string, seq: number, at: number, duplicate?: true }} Published
 *
 * A part of a room's history: `limit` messages above `after`, or the last of those below `before`, or the newest.
 * @typedef {{ type: 'history', id?: RequestId, key: string, epoch?: string, after?: number, before?: number,
 *   limit: number }} History
 *
 * @typedef {{ seq: number, at: number, from?: string, messageId?: string, data: unknown }} HistoryMessage
 * @typedef {{ type: 'message', key: string } & HistoryMessage} Message `from`: the user; none for an anonymous one
 * @typedef {{ type: 'gap', key: string, epoch: string, seq: number, oldest: number, reason: string }} Gap
 * @typedef {{ type: 'history', id?: RequestId, key: string, epoch: string, oldest: number, newest: number,
 *   messages: HistoryMessage[], more: boolean, truncated?: true }} HistoryAnswer
 */

/** Messages in one answer: the default, and the most. */
export const HISTORY_DEFAULT = 50
export const HISTORY_MAX = 500

const EPOCH_CHARACTERS_MAX = 64

/** Parsers of some languages fail on deeper ones. */
const DATA_DEPTH_MAX = 64

const messageIdGrammar = /^[A-Za-z0-9_-]{16,64}$/

/** @param {unknown} value @returns {value is string} */
export const isMessageId = value => typeof value === 'string' && messageIdGrammar.test(value)

/**
 * The start of a subscription, if it is one to a room.
 *
 * @param {Record<string, unknown>} entry of `keys`
 * @param {RequestId} [id]
 * @returns {RoomStart | undefined} `undefined` if no field of a room is there
 */
export function readStart({ after, last, presence }, id) {
  if (after === undefined && last === undefined && presence === undefined) return undefined
  if (after !== undefined && last !== undefined) throw bad('give "after" or "last", not both', id)
  if (last !== undefined && !(isCount(last) && last >= 1 && last <= HISTORY_MAX)) {
    throw bad(`"last" must be a whole number from 1 to ${HISTORY_MAX}`, id)
  }
  if (presence !== undefined && typeof presence !== 'boolean') throw bad('"presence" must be true or false', id)
  return { after: after === undefined ? undefined : readPosition(after, id), last, presence: presence === true }
}

/** @param {unknown} position @param {RequestId} [id] @returns {Position} */
function readPosition(position, id) {
  const { epoch, seq } = /** @type {Record<string, unknown>} */ (position ?? {})
  if (!isEpoch(epoch) || !isCount(seq)) throw bad('"after" must be a position, as in {"epoch":E,"seq":Q}', id)
  return { epoch, seq }
}

/**
 * @param {Record<string, unknown>} message
 * @param {string} text that it was parsed from
 * @param {RequestId} [id]
 * @returns {Publish}
 */
export function readPublish({ key, messageId }, text, id) {
  if (messageId !== undefined && !isMessageId(messageId)) {
    throw bad('"messageId" must be 16 to 64 characters of A-Z a-z 0-9 _ -', id)
  }
  const data = rawMember(text, 'data')
  if (!data) throw bad('the field "data" is missing', id)
  if (data.depth > DATA_DEPTH_MAX) throw bad(`"data" is nested deeper than ${DATA_DEPTH_MAX}`, id)
  return { type: 'publish', id, key: readKey(key, id), messageId, data: data.text }
}

/**
 * A publish that did not come over the WebSocket: the same fields without a type, and the publisher's name.
 *
 * @param {string} text
 * @returns {Publish & { from: string }}
 * @throws {ProtocolError} `bad_message`
 */
export function readPublishFields(text) {
  const message = parseObject(text)
  const { from = '' } = message
  if (typeof from !== 'string' || (from !== '' && !isUser(from))) {
    throw bad(`"from" must be a user: at most ${USER_CHARACTERS_MAX} characters, and no control characters`)
  }
  return { ...readPublish(message, text), from }
}

/** @param {Record<string, unknown>} message @param {RequestId} [id] @returns {History} */
export function readHistory({ key, epoch, after, before, limit = HISTORY_DEFAULT }, id) {
  if (epoch !== undefined && !isEpoch(epoch)) {
    throw bad(`"epoch" must be a string of 1 to ${EPOCH_CHARACTERS_MAX} characters`, id)
  }
  if (after !== undefined && before !== undefined) throw bad('give "after" or "before", not both', id)
  if ((after !== undefined && !isCount(after)) || (before !== undefined && !isCount(before))) {
    throw bad('"after" and "before" must be whole numbers', id)
  }
  if (!isCount(limit) || limit === 0) throw bad('"limit" must be a whole number from 1', id)
  const at = after === undefined ? { before } : { after }
  return { type: 'history', id, key: readKey(key, id), epoch, ...at, limit: Math.min(limit, HISTORY_MAX) }
}

/**
 * The `history` request from an HTTP query, whose numbers are text.
 *
 * @param {string} key @param {Record<string, unknown>} query
 * @returns {History}
 * @throws {ProtocolError} `bad_message`
 */
export function readHistoryQuery(key, { epoch, after, before, limit }) {
  return readHistory({ key, epoch, after: numberOf(after), before: numberOf(before), limit: numberOf(limit) })
}

/** @param {unknown} text @returns {unknown} a number if it is written as one; a wrong text stays as it is */
const numberOf = text => (typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : text)

/** The text after a message's data. */
export const MESSAGE_TAIL = '}'

/**
 * A room's messages up to their data. The data follows as it was published, then {@link MESSAGE_TAIL}.
 *
 * @param {string} key
 * @returns {(message: { seq: number, at: number, from: string, messageId: string | undefined }) => string}
 */
export function createMessageHeads(key) {
  const start = `${JSON.stringify({ type: 'message', key }).slice(0, -1)},`
  return message => start + fieldsOf(message)
}

/**
 * The text of a `history`, or without `type` and `id` the answer to the same request over HTTP.
 *
 * @param {{ type?: 'history', id?: RequestId, key: string, epoch: string, oldest: number, newest: number, more: boolean,
 *   truncated?: boolean }} head
 * @param {{ seq: number, at: number, from: string, messageId: string | undefined, data: Buffer }[]} messages
 * @returns {Buffer}
 */
export function historyBody({ type, id, key, epoch, oldest, newest, more, truncated }, messages) {
  const head = JSON.stringify({ type, id, key, epoch, oldest, newest, more, truncated: truncated || undefined })
  /** @type {Uint8Array[]} */
  const parts = [Buffer.from(`${head.slice(0, -1)},"messages":[`)]
  for (const [index, message] of messages.entries()) {
    parts.push(Buffer.from(`${index === 0 ? '{' : `${MESSAGE_TAIL},{`}${fieldsOf(message)}`), message.data)
  }
  parts.push(Buffer.from(messages.length === 0 ? ']}' : `${MESSAGE_TAIL}]}`))
  return Buffer.concat(parts)
}

/** @param {{ seq: number, at: number, from: string, messageId: string | undefined }} message */
function fieldsOf({ seq, at, from, messageId }) {
  const publisher = from === '' ? '' : `,"from":${JSON.stringify(from)}`
  const name = messageId === undefined ? '' : `,"messageId":"${messageId}"`
  return `"seq":${seq},"at":${at}${publisher}${name},"data":`
}

/** @param {unknown} value @returns {value is number} */
const isCount = value => Number.isSafeInteger(value) && /** @type {number} */ (value) >= 0

/** @param {unknown} value @returns {value is string} */
const isEpoch = value => typeof value === 'string' && value.length > 0 && value.length <= EPOCH_CHARACTERS_MAX

/** @param {string} message @param {RequestId} [id] */
const bad = (message, id) => new ProtocolError('bad_message', message, id)
