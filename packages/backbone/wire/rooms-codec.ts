// Rooms on the wire: positions are places in a room's order, answers are the messages after them, and a command
// publishes, deletes or hands a value over. A get asks for a part of the history: its key names the room and the part.
// members-codec.ts has the members of a room, pushed-codec.ts the values that a journal keeps.
import { errorCodes, isProblem, type Position, type Problem, problemText } from '@keycast/protocol'
import type { Taken } from '../backbone.ts'
import { type Codec, incomplete, isCount, isId, readKey, type Sent, WireError } from './codec.ts'
import { decodePresence, encodePresence, type Join, type PresenceAnswers, readJoin } from './members-codec.ts'
import { decodePushed, type PushedAnswers } from './pushed-codec.ts'
import { encodeContent, type PutCommand, readPut, readTaken } from './values-codec.ts'

/**
 * `at`: milliseconds since 1970; it orders nothing. `from`: the publisher, empty for an anonymous one. `data`: JSON in
 * UTF-8 as it was published, never parsed on the way. `deleted`: an operator deleted it, and nothing is left but its
 * place. `deletes`: it tells readers so; the first and last seq of each part. Both since 2.3.
 */
export interface Message {
  seq: number
  at: number
  from: string
  messageId: string | undefined
  data: Buffer
  deleted?: true
  deletes?: [first: number, last: number][]
}

/**
 * The first answer to each watch: the room's head is `seq`, its first message still held `oldest` (`seq` + 1 where none
 * is), and the messages from `after` + 1 on follow. Again where `oldest` rose and no messages say so.
 */
export interface HeadAnswer {
  type: 'head'
  key: string
  epoch: string
  seq: number
  oldest: number
  after: number
}

/**
 * Messages after the gateway's position cannot be given; the stream goes on after `seq`, the head. `trimmed`: the
 * history no longer reaches back. `epoch`: the position is one of another history. `ahead`: it is beyond the head.
 */
export type GapReason = 'trimmed' | 'epoch' | 'ahead'

interface GapAnswer {
  type: 'gap'
  key: string
  epoch: string
  seq: number
  oldest: number
  reason: GapReason
}

/** Messages that follow each other. `oldest` is the room's, since 2.2. */
export interface MessagesAnswer {
  type: 'messages'
  key: string
  epoch: string
  oldest?: number
  messages: Message[]
}

/**
 * A part of a room's history, ascending; `oldest` and `newest` are the room's. `more`: there is more in the direction
 * asked. `truncated`: `after` reaches further back than the history.
 */
export interface HistoryAnswer {
  type: 'history'
  key: string
  epoch: string
  oldest: number
  newest: number
  messages: Message[]
  more: boolean
  truncated: boolean
}

/** A watch stands, and a later answer ends the failure where there is `retryAfterMs`; a get is over. */
export interface FailedAnswer extends Problem {
  type: 'failed'
  key: string
  code: RoomErrorCode
}

export type Answer =
  | HeadAnswer
  | GapAnswer
  | MessagesAnswer
  | HistoryAnswer
  | FailedAnswer
  | PresenceAnswers
  | PushedAnswers

/** With a `messageId`, the same one of the same publisher in the same room is the same message. */
export interface Publish {
  type: 'publish'
  room: string
  messageId: string | undefined
  from: string
  data: Buffer
}

/**
 * Deletes messages for good, since 2.3: those of a room, all that it holds where there is no `seqs`; or a user's in every
 * room. Said again it does no harm.
 */
export type Delete = { type: 'delete'; room: string; seqs?: number[] } | { type: 'delete'; user: string }

/** How many messages were deleted. */
export interface Deleted {
  messages: number
}

/** Where the message is. `duplicate`: it was there already. */
export interface Published {
  epoch: string
  seq: number
  at: number
  duplicate: boolean
}

/** How far a link was sent some of its rooms. */
export type Heads = { key: string; epoch: string; seq: number }[]

export interface Rooms {
  Position: Position
  Payload: Join | undefined
  Answer: Answer
  Notice: never
  Command: Publish | Delete | PutCommand
  /** Of a problem nothing was kept, except with `publish_unknown`, which a gateway says where no result came. */
  Result: Published | Deleted | Taken | Problem
  Heads: Heads
}

/**
 * The reason why a room or a publish was refused: codes of the protocol, whose texts clients read. The last is a
 * gateway's own.
 */
export const roomErrorCodes = Object.freeze([
  'bad_message',
  'capacity',
  'id_conflict',
  'journal_unavailable',
  'name_taken',
  'rate_limited',
  'log_full',
  'other_epoch',
  'too_large',
  'unknown_namespace',
  'publish_unknown',
] as const)

export type RoomErrorCode = (typeof roomErrorCodes)[number]

/** Replaces the code of a newer journal: its message still says what happened, and nothing was kept. */
const GENERAL_CODE = 'journal_unavailable'

const gapReasons = new Set<unknown>(['trimmed', 'epoch', 'ahead'])

/** Messages in one answer to a get. */
export const HISTORY_MESSAGES_MAX = 500

/** Bytes of data in one answer to a get, one message at least. */
export const HISTORY_BYTES_MAX = 2 ** 20

export const roomsCodec: Codec<Rooms> = {
  wire: 'rooms/2.5',
  readPosition,
  readPayload: readJoin,
  encodeAnswer(answer) {
    if (isAboutPresence(answer)) return encodePresence(answer)
    if (answer.type === 'pushed') return encodeContent(answer)
    if (answer.type !== 'messages' && answer.type !== 'history') return { head: answer, parts: [] }
    const { messages, ...head } = answer
    const first = messages[0]?.seq ?? 0
    const heads = messages.map(({ at, from, messageId, data, deleted, deletes }) => {
      return { at, from, messageId, bytes: data.length, deleted, deletes }
    })
    const headBytes = messages.length > 1 ? messages.reduce((sum, message) => sum + headBytesOf(message), 0) : 0
    return { head: { ...head, first, messages: heads }, parts: [together(messages)], headBytes }
  },
  decodeAnswer(head, parts) {
    readKey(head.key)
    switch (head.type) {
      case 'head':
        return isHead(head) && isCount(head.after) ? head : incomplete(head)
      case 'gap':
        if (!isHead(head)) return incomplete(head)
        if (!gapReasons.has(head.reason)) head.reason = 'trimmed' // a newer journal's: the history is not there
        return head
      case 'messages': {
        const { type, key, epoch, oldest } = head
        const messages = readMessages(head, parts)
        const isComplete = isId(epoch) && (oldest === undefined || isCount(oldest)) && messages.length > 0
        return isComplete ? { type, key, epoch, oldest, messages } : incomplete(head)
      }
      case 'history': {
        const { type, key, epoch, oldest, newest, more, truncated } = head
        if (!isId(epoch) || !isCount(oldest) || !isCount(newest)) return incomplete(head)
        const messages = readMessages(head, parts)
        return { type, key, epoch, oldest, newest, messages, more: more === true, truncated: truncated === true }
      }
      case 'failed':
        return { type: head.type, key: head.key, ...readProblem(head.code, head) }
      case 'joined':
      case 'left':
      case 'members':
      case 'presence':
        return decodePresence(head, parts)
      case 'pushed':
      case 'unchanged':
        return decodePushed(head, parts)
      default:
        return undefined
    }
  },
  encodeCommand(command) {
    if (command.type === 'delete') return { head: command, parts: [] }
    if (command.type === 'put') return encodeContent(command)
    const { type, room, messageId, from, data } = command
    return { head: { type, room, messageId, from }, parts: [data] }
  },
  // Checks only the form: a request that cannot be read is repeated with all others of its link. The journal checks the
  // content, and answers errors.
  decodeCommand(head, parts) {
    if (head.type === 'delete') return readDelete(head)
    if (head.type === 'put') return readPut(head, parts)
    const { type, room, messageId, from } = head
    if (type !== 'publish') return undefined
    const hasId = messageId === undefined || typeof messageId === 'string'
    if (typeof room !== 'string' || typeof from !== 'string' || !hasId || parts.length === 0) {
      throw new WireError('a publish is incomplete')
    }
    return { type, room, messageId, from, data: parts[0] }
  },
  encodeResult(result) {
    if (!isProblem(result)) return result
    const { code, ...said } = result
    return { error: code, ...said, message: problemText(result) }
  },
  readResult(result) {
    if (result.error !== undefined) return readProblem(result.error, result)
    if (result.outcome !== undefined) return readTaken(result)
    const { epoch, seq, at, duplicate, messages } = result
    if (isCount(messages)) return { messages }
    if (!isId(epoch) || !isCount(seq) || !isCount(at)) throw new WireError('the result of a publish is incomplete')
    return { epoch, seq, at, duplicate: duplicate === true }
  },
  readHeads(heads) {
    if (!Array.isArray(heads)) throw new WireError('heads are not a list')
    return heads.map(head => ({ key: readKey(head?.key), ...readPosition(head) }))
  },
}

/** The reason why the messages after a position cannot be given; `undefined` if they can. */
export function gapFrom(
  position: Position,
  head: { epoch: string; seq: number; oldest: number },
): GapReason | undefined {
  if (position.epoch !== head.epoch) return 'epoch'
  if (position.seq > head.seq) return 'ahead'
  return position.seq + 1 < head.oldest ? 'trimmed' : undefined
}

function isAboutPresence(answer: Answer): answer is PresenceAnswers {
  const { type } = answer
  return type === 'joined' || type === 'left' || type === 'members' || type === 'presence'
}

function readPosition({ epoch, seq }: Sent): Position {
  if (!isId(epoch) || !isCount(seq)) throw new WireError('a position is not a place in an epoch')
  return { epoch, seq }
}

/** What is said of a message beside its data. */
const headBytesOf = ({ from, messageId = '', deletes = [] }: Message) =>
  MESSAGE_HEAD_BYTES + from.length + messageId.length + RANGE_BYTES * deletes.length

const MESSAGE_HEAD_BYTES = 64
const RANGE_BYTES = 20

/** One part for all messages of an answer: a part each would cost more than the message. */
function together(messages: Message[]) {
  return messages.length === 1 ? messages[0].data : Buffer.concat(messages.map(({ data }) => data))
}

/** @returns their data are slices of the part */
function readMessages(head: Sent, parts: Buffer[]): Message[] {
  const { first, messages } = head
  if (!Array.isArray(messages) || !isCount(first) || parts.length === 0) return incomplete(head)
  let end = 0
  const read = messages.map((message, index) => {
    const { at, from, messageId, bytes, deleted, deletes } = message ?? {}
    const hasId = messageId === undefined || typeof messageId === 'string'
    if (!isCount(at) || typeof from !== 'string' || !hasId || !isCount(bytes)) return incomplete(head)
    const start = end
    end += bytes
    const read: Message = { seq: first + index, at, from, messageId, data: parts[0].subarray(start, end) }
    if (deleted === true) read.deleted = true
    if (deletes !== undefined) read.deletes = isRanges(deletes) ? deletes : incomplete(head)
    return read
  })
  return end === parts[0].length ? read : incomplete(head)
}

function readDelete({ room, seqs, user }: Record<string, unknown>): Delete {
  if (typeof user === 'string') return { type: 'delete', user }
  if (typeof room !== 'string' || !(seqs === undefined || (Array.isArray(seqs) && seqs.every(isCount)))) {
    throw new WireError('a deletion is incomplete')
  }
  return { type: 'delete', room, seqs }
}

const isRanges = (value: unknown): value is NonNullable<Message['deletes']> =>
  Array.isArray(value) && value.every(range => Array.isArray(range) && range.length === 2 && range.every(isCount))

function readProblem(code: unknown, { message, retryAfterMs }: { message?: unknown; retryAfterMs?: unknown }) {
  if (typeof code !== 'string') throw new WireError('a failure has no code')
  const known = roomErrorCodes.find(each => each === code) ?? GENERAL_CODE
  const said = { code: known, message: typeof message === 'string' ? message : errorCodes[known] }
  return isCount(retryAfterMs) ? { ...said, retryAfterMs } : said
}

const isHead = ({ epoch, seq, oldest }: Sent) => isId(epoch) && isCount(seq) && isCount(oldest)

/**
 * The part of a history that is asked for: messages above `after`, or the last ones below `before`; no more than
 * `limit`. With `epoch`, of that history only.
 */
export type HistoryRange = { epoch?: string; limit: number } & (
  | { after: number; before?: undefined }
  | { before: number; after?: undefined }
)

const historyGrammar = /^(\S+) (\S+) (after|before) (\d{1,16}) (\d{1,3})$/

/** The key of a get: requests for the same part of the same room share one. */
export function historyKey(room: string, { epoch = '-', after, before, limit }: HistoryRange) {
  const bound = after === undefined ? `before ${before}` : `after ${after}`
  return `${room} ${epoch} ${bound} ${Math.min(limit, HISTORY_MESSAGES_MAX)}`
}

/** @returns `undefined` if it is no such key */
export function readHistoryKey(key: string): { room: string; range: HistoryRange } | undefined {
  const [, room, epoch, side, bound, limit] = historyGrammar.exec(key) ?? []
  if (room === undefined || Number(limit) > HISTORY_MESSAGES_MAX || Number(limit) === 0) return undefined
  const at = Math.min(Number(bound), Number.MAX_SAFE_INTEGER)
  const of = epoch === '-' ? {} : { epoch }
  const range = side === 'after' ? { ...of, after: at } : { ...of, before: at }
  return { room, range: { ...range, limit: Number(limit) } }
}
