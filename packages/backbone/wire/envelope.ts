// The messages between a gateway's link and a hub, whatever service they carry: link ids, running numbers, beats, and
// lists of what a codec reads and writes. docs/backbone.md shows each message with an example.
//
// direction      socket           message
// link → hub     PUSH → PULL      watch, get, unwatch, cancelGet, notice: one JSON part
// link → hub     PUSH → PULL      command: a JSON part, then the parts of all commands, joined where there are several
// link → hub     DEALER → ROUTER  beat, taken, bye: one JSON part
// hub → link     ROUTER → DEALER  beat, resync, bye: one JSON part
// hub → link     ROUTER → DEALER  answers: a JSON part, then the parts of each answer
import { excerpt } from '@keycast/protocol'
import { isPayer, type Payer } from '@keycast/service'
import {
  type Codec,
  type Encoded,
  isCompatible,
  isCount,
  isId,
  parseJson,
  readKey,
  type Sent,
  type Service,
  WireError,
} from './codec.ts'

/** A wanted key, with the asking gateway's position in it. `payer`: whom the node charges for it; nobody where it is absent. */
export interface Want<S extends Service> {
  key: string
  position: S['Position'] | undefined
  payload?: S['Payload']
  payer?: Payer
}

/**
 * What a request says of wants. `left`: nobody at the gateway watches these keys; without it another node may be asked for
 * them, or the gateway is of an older release.
 */
type Wanting<S extends Service> =
  | { type: 'watch' | 'get'; wants: Want<S>[] }
  | { type: 'unwatch' | 'cancelGet'; keys: string[]; left?: boolean }

/** The content of one request. */
type RequestBody<S extends Service> =
  | Wanting<S>
  | { type: 'notice'; notice: S['Notice'] | undefined }
  | { type: 'command'; commands: SaidCommand<S>[] }
  | { type: 'unknown'; kind: string }

/**
 * `command` is `undefined` if its kind is not known here. `leftMs`: the time, when it was sent, until its gateway gives it
 * up; `undefined` from a gateway of an older release. `payer`: as of a want.
 */
interface SaidCommand<S extends Service> {
  id: string
  command: S['Command'] | undefined
  leftMs: number | undefined
  payer: Payer | undefined
}

/** `number` runs from 1 without a gap within a link. */
export interface Request<S extends Service> {
  link: string
  number: number
  body: RequestBody<S>
}

/** The body of a request before it is encoded: commands are encoded once, however often they are sent. */
export type Saying<S extends Service> =
  | Wanting<S>
  | { type: 'notice'; notice: S['Notice'] }
  | { type: 'command'; commands: { id: string; encoded: Encoded; leftMs: number; payer?: Payer }[] }

/**
 * `number`: requests sent so far. `taken`: bytes of answers received so far. `log`, `logAt`: the node's log has gone
 * back behind what the gateway was told of it, which was this.
 */
interface LinkBeat {
  type: 'beat'
  link: string
  number: number
  taken: number
  log?: string
  logAt?: number
}

interface Taken {
  type: 'taken'
  link: string
  taken: number
}

interface Bye {
  type: 'bye'
  link: string
}

/** A beat of a peer with another wire version; `wire` is missing where the peer names none. */
export interface Incompatible {
  type: 'incompatible'
  link: string
  wire: string | undefined
}

export type FromLink = LinkBeat | Taken | Bye | Incompatible

/** The result of a command. `isRefused`: the hub does not know the command's kind, and has done nothing. */
export type CommandResult<S extends Service> =
  | { id: string; result: S['Result']; isRefused?: undefined }
  | { id: string; isRefused: true }

/**
 * `reached`: requests received so far. `answered`: messages of answers sent so far. `log`: the id of what the node
 * answers from, of a service whose nodes can share it. `logAt`: how far that log is, which only grows. `isCutOff`: the
 * node cannot reach it. An `undefined` answer is of a kind that is not known here.
 */
export interface HubBeat<S extends Service> {
  type: 'beat'
  link: string
  reached: number
  answered: number
  log?: string
  logAt?: number
  isCutOff?: boolean
  heads?: S['Heads']
}

export interface Answers<S extends Service> {
  type: 'answers'
  link: string
  number: number
  reached: number
  logAt?: number
  answers: (S['Answer'] | undefined)[]
  results: CommandResult<S>[]
}

export type FromHub<S extends Service> = HubBeat<S> | { type: 'resync'; link: string } | Bye | Incompatible | Answers<S>

/** Keys in one request: a hub takes 10 µs for each, and nothing else meanwhile. */
export const KEYS_PER_REQUEST_MAX = 200

/** Bytes of a part a hub accepts: 200 wants of 255-character ids need a tenth of it. */
export const REQUEST_BYTES_MAX = 2 ** 20

/** Encodes a message of one part. */
export function encodeMessage(message: object) {
  return Buffer.from(JSON.stringify(message))
}

/** @returns the parts */
export function encodeRequest<S extends Service>(link: string, number: number, saying: Saying<S>): Buffer[] {
  if (saying.type !== 'command') return [encodeMessage({ ...saying, link, number })]
  const commands = []
  const counts = []
  const parts = []
  for (const { id, encoded, leftMs, payer } of saying.commands) {
    commands.push({ id, command: encoded.head, leftMs, payer })
    counts.push(encoded.parts.length)
    for (const part of encoded.parts) parts.push(part)
  }
  const head = { type: 'command', link, number, commands, parts: counts }
  if (parts.length < 2) return [encodeMessage(head), ...parts]
  // For a socket a part costs more than the copy of a short message.
  return [encodeMessage({ ...head, joined: parts.map(part => part.length) }), Buffer.concat(parts)]
}

/**
 * The parts of a message, as they were before they were joined.
 *
 * @param joined the size of each; `undefined` if they came one by one
 */
function separate(parts: Buffer[], joined: unknown): Buffer[] {
  if (joined === undefined) return parts
  const sizes = list('joined', joined)
  const [head, whole] = parts
  if (parts.length !== 2) throw new WireError(`joined parts came in ${parts.length - 1}`)
  const separated = [head]
  let end = 0
  for (const size of sizes) {
    checkCount('joined', size)
    separated.push(whole.subarray(end, end + size))
    end += size
  }
  if (end !== whole.length) throw new WireError(`joined parts of ${end} bytes came with ${whole.length}`)
  return separated
}

/**
 * @param envelope `logAt` goes with results
 * @returns the parts; those of the answers are passed on, not copied
 */
export function encodeAnswers<S extends Service>(
  { link, number, reached, logAt }: { link: string; number: number; reached: number; logAt?: number },
  answers: Encoded[],
  results: CommandResult<S>[],
): Buffer[] {
  const heads = []
  const counts = []
  const parts = []
  for (const answer of answers) {
    heads.push(answer.head)
    counts.push(answer.parts.length)
    parts.push(...answer.parts)
  }
  const head = { type: 'answers', link, number, reached, answers: heads, parts: counts }
  return [encodeMessage(results.length === 0 ? head : { ...head, logAt, results }), ...parts]
}

/** @throws {WireError} */
export function decodeRequest<S extends Service>(parts: Buffer[], codec: Codec<S>): Request<S> {
  const head = parse(parts[0])
  checkLink(head.link)
  checkCount('number', head.number)
  return { link: head.link, number: head.number, body: readBody(head, parts, codec) }
}

function readBody<S extends Service>(
  { type, wants, keys, left, notice, commands, parts: counts, joined }: Sent,
  parts: Buffer[],
  codec: Codec<S>,
): RequestBody<S> {
  switch (type) {
    case 'watch':
    case 'get':
      return { type, wants: list(type, wants).map(want => readWant(want, codec)) }
    case 'unwatch':
    case 'cancelGet':
      return { type, keys: list(type, keys).map(readKey), ...(left === true && { left }) }
    case 'notice':
      return { type, notice: codec.readNotice?.(object(type, notice)) }
    case 'command':
      return {
        type,
        commands: withParts(type, commands, counts, separate(parts, joined), (each, own) => ({
          id: readId(each),
          command: codec.decodeCommand?.(object(type, each.command), own),
          leftMs: readLeftMs(each),
          payer: readPayer(each),
        })),
      }
    default:
      if (typeof type !== 'string') throw new WireError('a request has no type')
      return { type: 'unknown', kind: type }
  }
}

/**
 * @param wire of this side
 * @throws {WireError}
 */
export function decodeBeat(part: Buffer, wire: string): FromLink {
  const { type, link, number, taken, log, logAt, wire: theirs } = parse(part)
  checkLink(link)
  if (type === 'bye') return { type, link }
  // Checked first: the other fields of another version's beat may mean anything.
  if (type === 'beat' && !isOurs(theirs, wire)) return incompatible(link, theirs)
  checkCount('taken', taken)
  if (type === 'taken') return { type, link, taken }
  if (type !== 'beat') throw new WireError(`a hub is sent no ${excerpt(type)}`)
  checkCount('number', number)
  if (log === undefined) return { type, link, number, taken }
  return { type, link, number, taken, log: readLog(log), logAt: readLogAt(logAt) }
}

/** @throws {WireError} */
export function decodeFromHub<S extends Service>(parts: Buffer[], codec: Codec<S>): FromHub<S> {
  const {
    type,
    link,
    reached,
    answered,
    number,
    answers,
    results,
    log,
    logAt,
    isCutOff,
    heads,
    wire,
    parts: counts,
  } = parse(parts[0])
  checkLink(link)
  switch (type) {
    case 'resync':
    case 'bye':
      return { type, link }
    case 'beat':
      if (!isOurs(wire, codec.wire)) return incompatible(link, wire)
      checkCount('reached', reached)
      checkCount('answered', answered)
      return {
        type,
        link,
        reached,
        answered,
        log: log === undefined ? undefined : readLog(log),
        logAt: readLogAt(logAt),
        isCutOff: isCutOff === true,
        heads: heads === undefined ? undefined : codec.readHeads?.(object('heads', heads)),
      }
    case 'answers':
      checkCount('number', number)
      checkCount('reached', reached)
      return {
        type,
        link,
        number,
        reached,
        logAt: readLogAt(logAt),
        answers: withParts(type, answers, counts, parts, (head, own) => codec.decodeAnswer(object(type, head), own)),
        results: results === undefined ? [] : list('results', results).map(result => readResult(result, codec)),
      }
    default:
      throw new WireError(`a link is sent no ${excerpt(type)}`)
  }
}

const parse = (part: Buffer) => object('a message', parseJson(part))

const isOurs = (theirs: unknown, ours: string) => typeof theirs === 'string' && isCompatible(theirs, ours)

const incompatible = (link: string, wire: unknown): Incompatible => ({
  type: 'incompatible',
  link,
  wire: typeof wire === 'string' ? wire.slice(0, 64) : undefined,
})

/**
 * Reads each element of a list with its parts. `counts` has their numbers, so that an element of an unknown kind can be
 * skipped together with its parts.
 *
 * @param parts of the whole message
 */
function withParts<T>(
  type: string,
  heads: unknown,
  counts: unknown,
  parts: Buffer[],
  read: (head: Sent, own: Buffer[]) => T,
) {
  const each = list(type, heads)
  const own = list('parts', counts)
  let sum = 1 // the JSON part itself
  for (const count of own) {
    checkCount('parts', count)
    sum += count
  }
  if (own.length !== each.length || sum !== parts.length) {
    throw new WireError(`${type} announced ${sum} parts and came with ${parts.length}`)
  }
  const elements = []
  let next = 1
  for (let index = 0; index < each.length; index++) {
    const from = next
    next += own[index]
    elements.push(read(each[index], parts.slice(from, next)))
  }
  return elements
}

function checkLink(link: unknown) {
  if (!isId(link)) throw new WireError('a message names no link')
}

function readLog(log: unknown): string {
  if (!isId(log)) throw new WireError('a log has no id')
  return log
}

function readLogAt(logAt: Sent): number | undefined {
  if (logAt !== undefined) checkCount('logAt', logAt)
  return logAt
}

function checkCount(name: string, value: unknown) {
  if (!isCount(value)) throw new WireError(`"${name}" is not a count: ${excerpt(value)}`)
}

/** Spares each reader of a codec the check. */
function object(name: string, value: unknown): Sent {
  if (typeof value !== 'object' || value === null) throw new WireError(`${name} is not an object`)
  return value
}

function list(type: string, value: unknown): Sent[] {
  if (!Array.isArray(value)) throw new WireError(`${type} comes with no list`)
  return value
}

function readWant<S extends Service>(want: Sent, codec: Codec<S>): Want<S> {
  const { key, position, payload } = want ?? {}
  readKey(key)
  return {
    key,
    position: position === undefined ? undefined : codec.readPosition(object('position', position)),
    payload: payload === undefined ? undefined : codec.readPayload?.(object('payload', payload)),
    payer: readPayer(want),
  }
}

/** @param element of a list of commands or results */
function readId(element: Sent) {
  const { id } = element ?? {}
  if (typeof id !== 'string') throw new WireError('a command has no id')
  return id
}

function readLeftMs({ leftMs }: Sent): number | undefined {
  if (leftMs !== undefined) checkCount('leftMs', leftMs)
  return leftMs
}

/** @param element a want or a command */
function readPayer({ payer }: Sent): Payer | undefined {
  if (payer !== undefined && !isPayer(payer)) throw new WireError(`a payer has another form: ${excerpt(payer)}`)
  return payer
}

function readResult<S extends Service>(element: Sent, codec: Codec<S>): CommandResult<S> {
  const id = readId(element)
  return element.isRefused === true
    ? { id, isRefused: true }
    : { id, result: codec.readResult?.(object('result', element.result)) }
}
