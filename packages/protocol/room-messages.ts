// The messages of rooms: a client's requests, and the messages that it is sent.
import { bad, parseObject, readKey } from './fields.ts'
import type { RequestId } from './messages.ts'
import { rawMember } from './raw-json.ts'
import { isUser, USER_CHARACTERS_MAX } from './users.ts'

/** A place in a room's order. `seq` counts 1, 2, 3 … within an epoch; another epoch is another history. */
export interface Position {
  epoch: string
  seq: number
}

/**
 * Where a subscription to a room begins: after a position, or with the last few messages; with neither it begins now.
 * `presence`: who is there is wanted as well.
 */
export interface RoomStart {
  after: Position | undefined
  last: number | undefined
  presence: boolean
}

/**
 * A room in `subscribed`: its head, its first message still held, and what follows at once. `recovered`: that is every
 * message after the position named.
 */
export interface RoomSubscribed {
  key: string
  epoch: string
  seq: number
  oldest: number
  recovered: boolean
  count: number
}

/** `data` is the JSON text as it was sent. */
export interface Publish {
  type: 'publish'
  id?: RequestId
  key: string
  messageId?: string
  data: string
}

export interface Published {
  type: 'published'
  id?: RequestId
  key: string
  epoch: string
  seq: number
  at: number
  duplicate?: true
}

/** A part of a room's history: `limit` messages above `after`, or the last of those below `before`, or the newest. */
export interface History {
  type: 'history'
  id?: RequestId
  key: string
  epoch?: string
  after?: number
  before?: number
  limit: number
}

/**
 * `deleted`: an operator deleted it, and nothing is left but its place. `deletes`: it tells that those from the first to
 * the last of each part were deleted. The data of both is `null`.
 */
interface HistoryMessage {
  seq: number
  at: number
  from?: string
  messageId?: string
  deleted?: true
  deletes?: [first: number, last: number][]
  data: unknown
}

/** A message whose data follows what is made of it. */
interface Head {
  seq: number
  at: number
  from: string
  messageId: string | undefined
  deleted?: true
  deletes?: [first: number, last: number][]
}

/** `from`: the user; none for an anonymous one. */
export type Message = { type: 'message'; key: string } & HistoryMessage

export interface Gap {
  type: 'gap'
  key: string
  epoch: string
  seq: number
  oldest: number
  reason: string
}

export interface HistoryAnswer {
  type: 'history'
  id?: RequestId
  key: string
  epoch: string
  oldest: number
  newest: number
  messages: HistoryMessage[]
  more: boolean
  truncated?: true
}

/** Messages in one answer: the default, and the most. */
export const HISTORY_DEFAULT = 50
export const HISTORY_MAX = 500

const EPOCH_CHARACTERS_MAX = 64

/** Parsers of some languages fail on deeper ones. */
export const DATA_DEPTH_MAX = 64

const messageIdGrammar = /^[A-Za-z0-9_-]{16,64}$/

export const isMessageId = (value: unknown): value is string =>
  typeof value === 'string' && messageIdGrammar.test(value)

/**
 * The start of a subscription, if it is one to a room.
 *
 * @param entry of `keys`
 * @returns `undefined` if no field of a room is there
 */
export function readStart({ after, last, presence }: Record<string, unknown>, id?: RequestId): RoomStart | undefined {
  if (after === undefined && last === undefined && presence === undefined) return undefined
  if (after !== undefined && last !== undefined) throw bad('give "after" or "last", not both', id)
  if (last !== undefined && !(isCount(last) && last >= 1 && last <= HISTORY_MAX)) {
    throw bad(`"last" must be a whole number from 1 to ${HISTORY_MAX}`, id)
  }
  if (presence !== undefined && typeof presence !== 'boolean') throw bad('"presence" must be true or false', id)
  return { after: after === undefined ? undefined : readPosition(after, id), last, presence: presence === true }
}

function readPosition(position: unknown, id?: RequestId): Position {
  const { epoch, seq } = (position ?? {}) as Record<string, unknown>
  if (!isEpoch(epoch) || !isCount(seq)) throw bad('"after" must be a position, as in {"epoch":E,"seq":Q}', id)
  return { epoch, seq }
}

/** @param text that it was parsed from */
export function readPublish({ key, messageId }: Record<string, unknown>, text: string, id?: RequestId): Publish {
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
 * @throws {ProtocolError} `bad_message`
 */
export function readPublishFields(text: string): Publish & { from: string } {
  const message = parseObject(text)
  const { from } = message
  if (from !== undefined && (typeof from !== 'string' || !isUser(from))) {
    throw bad(`"from" must be a user: 1 to ${USER_CHARACTERS_MAX} characters, and no control characters`)
  }
  return { ...readPublish(message, text), from: from ?? '' }
}

export function readHistory(
  { key, epoch, after, before, limit = HISTORY_DEFAULT }: Record<string, unknown>,
  id?: RequestId,
): History {
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
 * @throws {ProtocolError} `bad_message`
 */
export function readHistoryQuery(key: string, { epoch, after, before, limit }: Record<string, unknown>): History {
  return readHistory({ key, epoch, after: numberOf(after), before: numberOf(before), limit: numberOf(limit) })
}

/** @returns a number if it is written as one; a wrong text stays as it is */
const numberOf = (text: unknown): unknown => (typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : text)

/** The text after a message's data. */
export const MESSAGE_TAIL = '}'

/** A room's messages up to their data. The data follows as it was published, then {@link MESSAGE_TAIL}. */
export function createMessageHeads(key: string): (message: Head) => string {
  const start = `${JSON.stringify({ type: 'message', key }).slice(0, -1)},`
  return message => start + fieldsOf(message)
}

const movingGrammar = /^\{"type":"(message|subscribed|gap)",/
const messageGrammar = /^\{"type":"message","key":"([^"]+)","seq":(\d+),/

/**
 * Where a message leaves its reader: `message`, `subscribed` and `gap` move positions in rooms.
 *
 * @param text as a gateway writes it; of a `message` the part before its data is enough
 * @returns by key; without an epoch it is the one before. `undefined` for all other messages
 */
export function positionsAfter(text: string): Map<string, { epoch?: string; seq: number }> | undefined {
  const type = movingGrammar.exec(text)?.[1]
  if (type === undefined) return undefined
  const [, key, seq] = messageGrammar.exec(text) ?? []
  if (key !== undefined) return new Map([[key, { seq: Number(seq) }]])
  const told = JSON.parse(text) as Gap | { type: 'subscribed'; keys: RoomSubscribed[] }
  if (told.type === 'gap') return new Map([[told.key, told]])
  // The messages that follow begin `count` below the head. A value has no head.
  const rooms = told.keys.filter(({ seq }) => seq !== undefined)
  return new Map(rooms.map(({ key, epoch, seq, count }) => [key, { epoch, seq: seq - count }]))
}

/** The text of a `history`, or without `type` and `id` the answer to the same request over HTTP. */
export function historyBody(
  {
    type,
    id,
    key,
    epoch,
    oldest,
    newest,
    more,
    truncated,
  }: {
    type?: 'history'
    id?: RequestId
    key: string
    epoch: string
    oldest: number
    newest: number
    more: boolean
    truncated?: boolean
  },
  messages: (Head & { data: Buffer })[],
): Buffer {
  const head = JSON.stringify({ type, id, key, epoch, oldest, newest, more, truncated: truncated || undefined })
  const parts: Uint8Array[] = [Buffer.from(`${head.slice(0, -1)},"messages":[`)]
  for (const [index, message] of messages.entries()) {
    parts.push(Buffer.from(`${index === 0 ? '{' : `${MESSAGE_TAIL},{`}${fieldsOf(message)}`), message.data)
  }
  parts.push(Buffer.from(messages.length === 0 ? ']}' : `${MESSAGE_TAIL}]}`))
  return Buffer.concat(parts)
}

function fieldsOf({ seq, at, from, messageId, deleted, deletes }: Head) {
  const publisher = from === '' ? '' : `,"from":${JSON.stringify(from)}`
  const name = messageId === undefined ? '' : `,"messageId":"${messageId}"`
  const deletion = deleted ? ',"deleted":true' : deletes ? `,"deletes":${JSON.stringify(deletes)}` : ''
  return `"seq":${seq},"at":${at}${publisher}${name}${deletion},"data":`
}

export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const isEpoch = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= EPOCH_CHARACTERS_MAX
