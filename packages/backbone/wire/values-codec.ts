// Values on the wire: positions are the versions that gateways hold, answers are states of keys, the one notice is a
// refresh. Commands ask whether a viewer may read a key or publish a message, and hand over the backend's values. Wants of
// one viewer's values bring that viewer's token.
import { type ErrorCode, errorCodes, excerpt } from '@keycast/protocol'
import { type Format, isPayer } from '@keycast/service'
import type { Answer, AskedMessage, Credentials, Decision, HandedOver, Held, Ruling, Taken } from '../backbone.ts'
import { type Codec, type Encoded, incomplete, isCount, readKey, type Sent, WireError } from './codec.ts'

/**
 * The backend's content changed: ask it now. At most KEYS_PER_REQUEST_MAX keys. `users`: of keys that have a value per
 * user, those of them alone, as {@link userName} names them.
 */
export interface RefreshNotice {
  type: 'refresh'
  keys: string[]
  users?: string[]
}

/**
 * Whether the viewer that a viewer key names may read the key it names. `maxAgeMs`: an admission that the backend gave
 * longer ago does not answer it.
 */
export type AuthorizeCommand = { type: 'authorize'; key: string; maxAgeMs?: number } & Credentials

/** The backend says what the key's value is: the body is the command's part. Without one the key has no value. */
export type PutCommand = { type: 'put' } & HandedOver

/** Whether a message may be published: its data is the command's part. Nodes before values/2.3 refuse the command. */
export type AskCommand = { type: 'ask' } & AskedMessage

/**
 * `WantPayload` goes with a want: a quiet watch hears of changes only; one of a viewer key brings credentials.
 * `ConfirmedHeads` goes with a beat: for each namespace, how old the moment is up to which all refreshes are over and
 * their results sent.
 */
type WantPayload = { quiet?: boolean } & Credentials

interface ConfirmedHeads {
  lagsMs: Record<string, number>
}

export interface Values {
  Position: Held
  Payload: WantPayload
  Answer: Answer
  Notice: RefreshNotice
  Command: AuthorizeCommand | PutCommand | AskCommand
  Result: Decision | Taken | Ruling
  Heads: ConfirmedHeads
}

const formats = new Set<unknown>(['json', 'text', 'base64'])

/** Replaces an error code of a newer fetcher; the answer's `message` still says what happened. */
const GENERAL_CODE = 'backend_error'

/** Replaces a format of a newer fetcher: bytes can always be given as bytes. */
const GENERAL_FORMAT = 'base64'

/** The version that a position of `not_found` has on the wire. */
const ABSENT = ''

/** Far above every time in milliseconds since 1970. */
const ORDER_MAX = 2 ** 52

/** @returns as nodes are told, also those of before there were such positions: none of their versions is the empty one */
export const positionOf = (held: Held | undefined): Held | undefined =>
  held && held.version === undefined ? { ...held, version: ABSENT } : held

export const valuesCodec: Codec<Values> = {
  wire: 'values/2.4',
  readPosition({ version: said, ageMs, order, rank, plan }) {
    if (typeof said !== 'string' || !isAge(ageMs)) throw new WireError('a position is not a version and its age')
    if (order !== undefined && !isOrder(order)) throw new WireError('a position has no number to go by')
    if (rank !== undefined && !isRank(rank)) throw new WireError('the rank of a position is no number')
    const version = said === ABSENT ? undefined : said
    if (plan === undefined) return { version, ageMs, order, rank }
    const { inMs, maxAgeMs, askedAgoMs } = plan ?? {}
    if (!isAge(inMs) || !isAge(maxAgeMs) || !isAge(askedAgoMs)) throw new WireError('a plan is not a time and two ages')
    return { version, ageMs, order, rank, plan: { inMs, maxAgeMs, askedAgoMs } }
  },
  readPayload(payload) {
    // Most watches have no more fields, and Node 20 takes 1 µs for an object spread with a field behind it.
    if (payload.authorization === undefined) return { quiet: payload.quiet === true }
    return { quiet: payload.quiet === true, ...readCredentials(payload) }
  },
  readHeads({ lagsMs }) {
    if (typeof lagsMs !== 'object' || lagsMs === null || !Object.values(lagsMs).every(isAge)) {
      throw new WireError('heads are not ages by namespace')
    }
    return { lagsMs }
  },
  encodeAnswer(answer) {
    if (answer.type !== 'value') return { head: answer, parts: [] }
    const { body, delta, ...head } = answer
    if (!delta) return { head, parts: [body] }
    return { head: { ...head, deltaFrom: delta.from }, parts: [body, delta.bytes] }
  },
  decodeAnswer(head, parts) {
    const { type, key } = head
    readKey(key)
    switch (type) {
      case 'value':
        return readValue(head, parts)
      case 'current':
        return isKept(head) ? head : incomplete(head)
      case 'kept':
        return typeof head.version === 'string' && (head.next === undefined || isNext(head.next))
          ? head
          : incomplete(head)
      case 'failed':
        return readFailed(head)
      default:
        return undefined
    }
  },
  encodeCommand(command) {
    if (command.type === 'ask') {
      const { data, ...head } = command
      return { head, parts: [data] }
    }
    return command.type === 'put' ? encodeContent(command) : { head: command, parts: [] }
  },
  decodeCommand(head, parts) {
    if (head.type === 'put') return readPut(head, parts)
    if (head.type === 'ask') return readAsk(head, parts)
    if (head.type !== 'authorize') return undefined
    const { type, key, maxAgeMs, ...credentials } = head
    if (maxAgeMs !== undefined && !isAge(maxAgeMs)) throw new WireError('a question has no age to go by')
    return { type, key: readKey(key), maxAgeMs, ...readCredentials(credentials) }
  },
  encodeResult(result) {
    if (!('ruling' in result) || result.ruling !== 'take' || !result.data) return result
    return { ...result, data: result.data.toString() }
  },
  readResult(head) {
    if (head.ruling !== undefined) return readRuling(head)
    if (head.verdict === undefined) return readTaken(head)
    const { verdict, message, ageMs, retryAfterMs } = head
    const isWhole = [ageMs, retryAfterMs].every(ms => ms === undefined || isAge(ms))
    if (typeof verdict !== 'string' || !isWhole) throw new WireError('a decision is incomplete')
    // A newer fetcher's verdict admits nobody.
    const known = verdict === 'admitted' || verdict === 'refused' ? verdict : 'failed'
    if (known !== 'failed' && ageMs === undefined) throw new WireError('a decision has no age')
    return { verdict: known, message: typeof message === 'string' ? message : '', ageMs, retryAfterMs }
  },
  readNotice({ type, keys, users }) {
    if (type !== 'refresh') return undefined
    if (!Array.isArray(keys)) throw new WireError('a refresh names no keys')
    if (users === undefined) return { type, keys: keys.map(readKey) }
    if (!Array.isArray(users) || !users.every(user => typeof user === 'string')) {
      throw new WireError('a refresh names no users')
    }
    return { type, keys: keys.map(readKey), users }
  },
}

/** Completes the head instead of copying it: it is fresh from JSON. */
function readValue(head: Sent, parts: Buffer[]): Answer {
  if (!isKept(head) || typeof head.contentType !== 'string' || typeof head.format !== 'string' || parts.length === 0) {
    return incomplete(head)
  }
  head.format = knownFormat(head.format)
  if (!isAge(head.delayMs)) delete head.delayMs
  head.body = parts[0]
  if (head.deltaFrom === undefined) return head
  if (typeof head.deltaFrom !== 'string' || parts.length < 2) return incomplete(head)
  head.delta = { from: head.deltaFrom, bytes: parts[1] }
  delete head.deltaFrom
  return head
}

/** @param saying a command or an answer: its value, if it has one, is told beside it, and the body is its part */
export function encodeContent(saying: { content: HandedOver['content'] }): Encoded {
  if (!saying.content) return { head: saying, parts: [] }
  const { content, ...head } = saying
  const { body, ...said } = content
  return { head: { ...head, ...said }, parts: [body] }
}

/** @returns of a command, or of an answer that has the same fields */
export function readPut(head: Sent, parts: Buffer[]): PutCommand {
  const { type, key, version, contentType, format, rank } = head
  readKey(key)
  if (rank !== undefined && !isRank(rank)) throw new WireError(`the rank of ${excerpt(key)} is no number`)
  const said = { type, key, rank, ...(head.isRepeated === true && { isRepeated: true }) }
  if (version === undefined) return { ...said, content: undefined }
  if (typeof version !== 'string' || typeof contentType !== 'string' || parts.length === 0) {
    throw new WireError(`what is handed over for ${excerpt(key)} is incomplete`)
  }
  return { ...said, content: { version, contentType, format: knownFormat(format), body: parts[0] } }
}

function readAsk({ type, key, from, messageId }: Sent, parts: Buffer[]): AskCommand {
  const isWhole = typeof from === 'string' && (messageId === undefined || typeof messageId === 'string')
  if (!isWhole || parts.length === 0)
    throw new WireError(`the question about a message for ${excerpt(key)} is incomplete`)
  return { type, key: readKey(key), from, messageId, data: parts[0] }
}

function readRuling({ ruling, data, reason, message, retryAfterMs }: Sent): Ruling {
  if (ruling === 'take') return typeof data === 'string' ? { ruling, data: Buffer.from(data) } : { ruling }
  if (ruling === 'refuse') return typeof reason === 'string' ? { ruling, reason } : { ruling }
  const told = {
    // So is that of a newer fetcher which is not known here.
    ruling: ruling === 'crowded' ? ruling : ('none' as const),
    message: typeof message === 'string' ? message : '',
  }
  return isAge(retryAfterMs) ? { ...told, retryAfterMs } : told
}

export function readTaken({ outcome, rank, code, message, retryAfterMs }: Sent): Taken {
  if (outcome === 'taken') return { outcome }
  if (outcome === 'older' && isRank(rank)) return { outcome, rank }
  if (typeof code !== 'string') throw new WireError('the result of a command is incomplete')
  return {
    code: Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : GENERAL_CODE,
    message: typeof message === 'string' ? message : undefined,
    retryAfterMs: isAge(retryAfterMs) ? retryAfterMs : undefined,
  }
}

const knownFormat = (format: unknown) => (formats.has(format) ? (format as Format) : GENERAL_FORMAT)

/**
 * The characters of a header (RFC 9110 section 5.5), without line breaks: a request that Node refuses to send would end
 * a worker.
 */
const headerGrammar = /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/

/** A token of 8 KiB and its scheme. */
const AUTHORIZATION_CHARACTERS_MAX = 9_000

/** The text stays out of the error: errors are logged. */
function readCredentials({ authorization, expiresAt }: Sent): Credentials {
  if (authorization === undefined) return {}
  if (typeof authorization !== 'string' || !isAge(expiresAt)) throw new WireError('the credentials are incomplete')
  if (authorization.length > AUTHORIZATION_CHARACTERS_MAX || !headerGrammar.test(authorization)) {
    throw new WireError('the credentials fit into no header')
  }
  return { authorization, expiresAt }
}

function readFailed(head: Sent): Answer {
  const hasTime = head.retryAfterMs === undefined || isAge(head.retryAfterMs)
  if (!isAged(head) || !hasTime || typeof head.code !== 'string') return incomplete(head)
  if (!Object.hasOwn(errorCodes, head.code)) head.code = GENERAL_CODE
  // It goes to clients as it is.
  if (typeof head.message !== 'string') head.message = errorCodes[head.code as ErrorCode]
  if (typeof head.tokenDigest !== 'string') delete head.tokenDigest
  for (const name of ['payer', 'onlyFor']) if (!isPayer(head[name])) delete head[name]
  return head
}

const isKept = (head: Sent) =>
  isAged(head) &&
  typeof head.version === 'string' &&
  head.maxAgeMs !== undefined &&
  typeof head.store === 'boolean' &&
  (head.order === undefined || isOrder(head.order)) &&
  (head.rank === undefined || isRank(head.rank)) &&
  (head.next === undefined || isNext(head.next))

const isNext = (next: Sent) => isAge(next?.inMs) && isAge(next.everyMs) && next.everyMs > 0

const isAged = (head: Sent) => isAge(head.ageMs) && (head.maxAgeMs === undefined || isAge(head.maxAgeMs))

export const isRank = (rank: unknown) => Number.isSafeInteger(rank)

/** One more must still be another number. */
const isOrder = (order: unknown) => isCount(order) && order < ORDER_MAX

const isAge = (ageMs: unknown) => typeof ageMs === 'number' && ageMs >= 0
