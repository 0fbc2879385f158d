// The messages between a fetcher's primary and its workers. Both sides import this file; nothing else spells a field.
//
// endpoint  binds    connects      sockets          carries
// work      primary  every worker  ROUTER ↔ DEALER  leases one way; credit and results the other
//
// Part 0 is a list of these messages as JSON. A part follows for each `value` result, in order: its body, the bytes
// themselves; and behind that, where the result has `deltaFrom`, the delta. So does one for all else that `hasBody`.
import { type ErrorCode, errorCodes } from '@keycast/protocol'
import type { Content, World } from '@keycast/service'

/**
 * Worker → primary, on start and each second: it is alive, and takes at most `credit` leases at one time. `worker` is
 * its `cluster.worker.id`, which ties the socket to the process. And what it has used so far, and holds.
 */
export interface Usage {
  cpuMs: number
  residentBytes: number
}

export type Credit = { type: 'credit'; worker: number; credit: number } & Usage

/**
 * Primary → worker: ask the backend once. `headers` are the namespace's (secret: never logged). `version`, `etag` and
 * `lastModified` are of the value the primary holds; absent where it holds none. `delta`: one may be of use.
 * `waitSeconds`: the backend may wait so long for a change. `hasBody`: JSON follows as a part, to be sent by POST;
 * otherwise it is a GET. `redirects`: those that stay at the origin are followed. `lacksToken`: there is none to ask with,
 * so nobody is asked. `statusOf`: it is a question with this method, to which the status is the answer, and to a POST the
 * body beside it; `headers` are then the viewer's own, or those of the room. `batch`: it is for many keys; `key`
 * names their namespace alone, so that the same worker has the bodies before.
 */
export interface Lease {
  type: 'lease'
  lease: number
  key: string
  url: string
  headers: Record<string, string>
  timeoutMs: number
  bytesMax: number
  delta: boolean
  etag?: string
  lastModified?: string
  version?: string
  waitSeconds?: number
  redirects?: boolean
  lacksToken?: boolean
  statusOf?: 'HEAD' | 'GET' | 'POST'
  hasBody?: boolean
  batch?: BatchLease
}

/** What a worker is to do. Its body goes beside it. */
export type Work = Omit<Lease, 'type' | 'lease' | 'hasBody'>

/** Pointers are JSON's (RFC 6901). `items`: to the list in the response; `id`: to an item's own. */
export interface BatchLease {
  items: string
  id: string
  keys: BatchKey[]
}

type BatchKey = { id: string } & Pick<Lease, 'key' | 'version' | 'delta'>

/**
 * What the backend's answer says beside its content. `maxAgeMs`: Cache-Control's or Expires', less Age; absent where
 * not given. `store` false: hold it only while watched. `lastModified`: only where it may be used as a validator.
 * `waited`: the backend says that it waited for a change (`Preference-Applied`, RFC 7240 section 3).
 */
interface Freshness {
  status: number
  store: boolean
  maxAgeMs?: number
  etag?: string
  lastModified?: string
  waited?: boolean
}

/**
 * Worker → primary: the result of one lease, how its fetch ended. A `current` result stands for 304, and for 200 with
 * the very content of the lease's `version`. Without `store` it is a 304 that has no Cache-Control: what the primary
 * holds of that stands, and of `maxAgeMs` too unless one is given. With `deltaFrom` a value brings a fossil delta from
 * that version, the lease's, to its own; with `deltaSkipped` it says why there is none from a version the lease named,
 * though one would be of use.
 */
export type ValueResult = { kind: 'value'; deltaFrom?: string; deltaSkipped?: DeltaSkip } & Content & Freshness

export type CurrentResult = { kind: 'current'; store?: boolean } & Omit<Freshness, 'store'>

export interface FailedResult {
  kind: 'failed'
  code: ErrorCode
  message: string
  status?: number
  retryAfterMs?: number
  maxAgeMs?: number
  /** That the request was made with, for the log. */
  traceparent?: string
}

/** To a lease with `statusOf`. `hasBody`: the response's body follows as a part. */
interface StatusResult {
  kind: 'status'
  status: number
  retryAfterMs?: number
  hasBody?: boolean
}

export type Result = ValueResult | CurrentResult | FailedResult | StatusResult

/** That there is no such value is an answer, too. */
export const hasFailed = (result: Result): result is FailedResult =>
  result.kind === 'failed' && result.code !== 'not_found'

export type DeltaSkip = 'no_base' | 'size' | 'time' | 'gain'

/**
 * With `nth` it is of that key of a batch, the second or a later one. The first key's comes last and ends the lease; alone,
 * it is of all. `askedAt`: when the backend was asked, by the host's clock; of a wait, when it had not answered yet. Two
 * values are told apart by it. By the times of the lease and of its result a worker, or a primary, that stood still would
 * have made of the newer value the older.
 */
export type LeaseResult = { nth?: number; askedAt?: number } & Result

/**
 * By this process's own clock. Never before the lease was sent: this process may have stood still between the two clocks'
 * readings, and whoever waits for a value from after that would wait for ever.
 */
export const askedAtOf = (
  { askedAt }: LeaseResult,
  sentAt: number,
  { now, hostNow }: Pick<World, 'now' | 'hostNow'>,
) => (askedAt === undefined ? sentAt : Math.max(sentAt, now() - (hostNow() - askedAt)))

export type ResultMessage = { type: 'result'; lease: number } & LeaseResult

/** The environment variable in which a primary gives its workers the endpoint of this incarnation. */
export const WORK_ENDPOINT_VARIABLE = 'KEYCAST_WORK_ENDPOINT'

/** The environment variable in which a primary tells its workers how many leases each takes at one time. */
export const WORK_CREDIT_VARIABLE = 'KEYCAST_WORK_CREDIT'

const kinds = new Set<unknown>(['value', 'current', 'failed', 'status'])

/** A message that does not follow this file. Both sides run the same code: this is a programmer's error. */
export class WorkError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'WorkError'
  }
}

/** A message with what it carries. The bytes are passed on, not copied: they must never change again. */
export interface Loaded<T> {
  message: T
  body?: Buffer
  delta?: Buffer
}

/**
 * Messages that go out as one: ZeroMQ costs a call per message, which is more than all else that is done for it. More would
 * keep their reader from the rest of its work for too long.
 */
export const MESSAGES_MAX = 32

/** @returns the parts */
export function encodeWork(loaded: Loaded<Credit | Lease | ResultMessage>[]): Buffer[] {
  const parts: Buffer[] = [Buffer.from(JSON.stringify(loaded.map(({ message }) => message)))]
  for (const { body, delta } of loaded) {
    if (body) parts.push(body)
    if (delta) parts.push(delta)
  }
  return parts
}

/**
 * @param parts as a worker receives them
 * @throws {WorkError}
 */
export function decodeLeases(parts: Buffer[]): Loaded<Lease>[] {
  let next = 1
  return parse(parts[0]).map(message => {
    if (message.type !== 'lease' || typeof message.lease !== 'number' || typeof message.url !== 'string') {
      throw new WorkError('a worker was sent something that is no lease')
    }
    return { message: message as unknown as Lease, body: message.hasBody ? parts[next++] : undefined }
  })
}

/**
 * @param parts as the primary receives them, without the routing id
 * @returns a body exactly where the result is a `value` or `hasBody`, a delta exactly where that has `deltaFrom`
 * @throws {WorkError}
 */
export function decodeFromWorker(parts: Buffer[]): Loaded<Credit | ResultMessage>[] {
  let next = 1
  const loaded = parse(parts[0]).map(message => {
    if (message.type === 'credit' && [message.credit, message.cpuMs, message.residentBytes].every(Number.isFinite)) {
      return { message: message as unknown as Credit }
    }
    const { type, lease, kind, askedAt = 0 } = message
    const whole = type === 'result' && typeof lease === 'number' && kinds.has(kind) && Number.isFinite(askedAt)
    const known = message.kind !== 'failed' || isErrorCode(message.code)
    if (!whole || !known) throw new WorkError('the primary was sent something that is neither credit nor result')
    const body = message.kind === 'value' || message.hasBody ? parts[next++] : undefined
    const delta = message.deltaFrom === undefined ? undefined : parts[next++]
    return { message: message as unknown as ResultMessage, body, delta }
  })
  if (next !== parts.length) throw new WorkError(`results that need ${next} parts came with ${parts.length}`)
  return loaded
}

/** Of an object the look-up would throw: it needs a text first. */
const isErrorCode = (code: unknown) => typeof code === 'string' && Object.hasOwn(errorCodes, code)

function parse(part: Buffer): Record<string, unknown>[] {
  let parsed
  try {
    parsed = JSON.parse(part.toString())
  } catch {
    throw new WorkError('a message is no JSON')
  }
  const isObject = (one: unknown): one is Record<string, unknown> => typeof one === 'object' && one !== null
  if (!Array.isArray(parsed) || !parsed.every(isObject)) throw new WorkError('a message is no list of JSON objects')
  return parsed
}

/**
 * Gathers the messages of one turn of the event loop.
 *
 * @param send called at the end of the turn, as often as needed, with {@link MESSAGES_MAX} items for one receiver at
 *   most
 */
export function batchPerTurn<T, To = undefined>(turn: World['turn'], send: (items: T[], to: To) => void) {
  let gathered = new Map<To, T[]>()

  function flush() {
    const batches = gathered
    gathered = new Map()
    for (const [to, items] of batches) {
      for (let at = 0; at < items.length; at += MESSAGES_MAX) send(items.slice(at, at + MESSAGES_MAX), to)
    }
  }

  return {
    add(item: T, to: To) {
      if (gathered.size === 0) turn(flush)
      const items = gathered.get(to)
      if (items) items.push(item)
      else gathered.set(to, [item])
    },
  }
}
