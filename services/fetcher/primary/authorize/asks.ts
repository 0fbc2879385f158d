// The requests that ask backends whether viewers may read: a lane of their own. Each origin has a cap, a queue and a
// breaker beside those of its fetches, so that a flood of viewers stops no fetch, and slow fetches keep no viewer out.
import { ANSWER_GRACE_MS, createUniqueQueue, type Deciding, type UniqueQueue } from '@keycast/service'
import type { Lease, Result } from '../../work/messages.ts'
import { type Breaker, createBreaker, type Verdict } from '../origins/breaker.ts'
import type { InTurns } from '../timing/in-turns.ts'

export type Asks = ReturnType<typeof createAsks>

/** How the backend answered. `sentAt`: when it was asked. Without a status there was none. */
export interface Reply {
  status: number | undefined
  message: string
  sentAt: number
  retryAfterMs: number | undefined
}

/** One request, from being queued to its end. `authorization` is secret. `attempt`: which worker this is. */
export interface Ask {
  /** Tells it from a fetch. */
  kind: 'ask'
  /** Names it, and with it the worker that makes it. */
  key: string
  url: string
  method: 'HEAD' | 'GET'
  authorization: string | undefined
  timeoutMs: number
  lane: Lane
  queuedAt: number
  sentAt: number
  attempt: 1 | 2
  probe: boolean
  done: (reply: Reply) => void
}

interface Lane {
  origin: string
  queue: UniqueQueue<Ask>
  /** Whose worker was lost: they go first. */
  returned: UniqueQueue<Ask>
  inFlight: number
  breaker: Breaker
  /** Whether its queue is being emptied. */
  isRefusing: boolean
}

/** What asks need of the workers. `lease` must only be called while there is credit. */
interface Pool {
  hasCredit: () => boolean
  lease: (ask: Ask, message: Omit<Lease, 'type' | 'lease'>) => void
}

/**
 * Of all lanes together: each holds a token, mostly 1 KB and at most 8. Every lane has an equal share, or one slow backend
 * would have the questions to all others refused.
 */
const QUEUED_MAX = 10_000

/** When to ask again where the queue is full. */
const FULL_RETRY_MS = 1_000

interface Deps {
  namespaces: { get: (name: string) => Deciding | undefined; names: string[] }
  pool: Pool
  /** Requests in flight to each origin. */
  cap: number
  inTurns: InTurns
  metrics: { asked: (origin: string, verdict: string, tookMs: number) => void }
  now: () => number
  queuedMax?: number
}

export function createAsks({ namespaces, pool, cap, inTurns, metrics, now, queuedMax = QUEUED_MAX }: Deps) {
  const lanes = new Map<string, Lane>()
  for (const name of namespaces.names) {
    const origin = namespaces.get(name)?.authorize?.origin
    if (origin === undefined || lanes.has(origin)) continue
    lanes.set(origin, {
      origin,
      queue: createUniqueQueue(),
      returned: createUniqueQueue(),
      inFlight: 0,
      breaker: createBreaker({ now }),
      isRefusing: false,
    })
  }
  const queuedPerLaneMax = Math.ceil(queuedMax / lanes.size)
  /** Backends take turns to be first, in case credit is short. */
  const rotation = [...lanes.values()]

  const queuedIn = ({ queue, returned }: Lane) => queue.size + returned.size

  function queued() {
    let sum = 0
    for (const lane of rotation) sum += queuedIn(lane)
    return sum
  }

  /** @param wanted `done` is called once */
  function add({
    origin,
    ...wanted
  }: Pick<Ask, 'key' | 'url' | 'method' | 'authorization' | 'timeoutMs' | 'done'> & { origin: string }) {
    const lane = lanes.get(origin) as Lane
    const ask: Ask = { kind: 'ask', ...wanted, lane, queuedAt: now(), sentAt: now(), attempt: 1, probe: false }
    if (!lane.breaker.admits()) return refuse(ask)
    if (queuedIn(lane) >= queuedPerLaneMax) {
      const message = 'too many viewers wait for the backend to be asked'
      return ask.done({ status: undefined, message, sentAt: now(), retryAfterMs: FULL_RETRY_MS })
    }
    lane.queue.add(ask)
    startNext(lane)
  }

  /** @param ask that is late, or whose lane's breaker is open */
  function refuse({ lane: { breaker }, done }: Ask) {
    if (breaker.admits()) {
      const message = 'the backend answers too slowly to be asked who may read, so many viewers wait'
      return done({ status: undefined, message, sentAt: now(), retryAfterMs: undefined })
    }
    const message = 'the backend failed too often to say who may read: its circuit breaker is open'
    done({ status: undefined, message, sentAt: now(), retryAfterMs: Math.max(0, breaker.retryAt() - now()) })
  }

  function startAll() {
    if (rotation.length > 1) rotation.push(rotation.shift() as Lane)
    for (const lane of rotation) startNext(lane)
  }

  function startNext(lane: Lane) {
    while (lane.inFlight < cap && queuedIn(lane) > 0) {
      if (mustRefuse(lane)) return refuseQueued(lane)
      if (!pool.hasCredit()) return
      send((lane.returned.take() ?? lane.queue.take()) as Ask)
    }
  }

  /** Nobody waits for the answer to the first any more, or the breaker admits none. @param lane with a queue */
  function mustRefuse({ breaker, returned, queue }: Lane) {
    const { queuedAt, timeoutMs } = (returned.first() ?? queue.first()) as Ask
    return !breaker.admits() || now() - queuedAt > timeoutMs + ANSWER_GRACE_MS
  }

  /** Refuses what is queued as far as it must be, and goes on with the rest. */
  function refuseQueued(lane: Lane) {
    if (lane.isRefusing) return
    lane.isRefusing = true
    inTurns(() => {
      if (queuedIn(lane) > 0 && mustRefuse(lane)) {
        refuse((lane.returned.take() ?? lane.queue.take()) as Ask)
        return true
      }
      lane.isRefusing = false
      startNext(lane)
      return false
    })
  }

  function send(ask: Ask) {
    const { lane, key, url, method, authorization, timeoutMs } = ask
    lane.inFlight++
    ask.sentAt = now()
    ask.probe = lane.breaker.start()
    // The viewer's own right to it, and nothing of the namespace's: its headers could open what the viewer may not see.
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
    pool.lease(ask, { key, url, headers, timeoutMs, bytesMax: 0, delta: false, statusOf: method })
  }

  /** A request under a lease in force ended. */
  function ended(ask: Ask, result: Result) {
    const { lane, sentAt } = ask
    lane.inFlight--
    const reply = replyOf(result, sentAt)
    lane.breaker.end(verdictOf(result), ask.probe)
    metrics.asked(lane.origin, labelOf(reply), now() - sentAt)
    ask.done(reply)
    startAll()
  }

  /** The worker that had a request will not answer. Another one is asked, once. */
  function lost(ask: Ask) {
    if (ask.attempt === 2) return ended(ask, twiceLost)
    const { lane } = ask
    lane.inFlight--
    if (ask.probe) lane.breaker.end('void', true)
    ask.attempt = 2
    lane.returned.add(ask)
  }

  return {
    add,
    startAll,
    ended,
    lost,
    stats: () => ({ queued: queued(), inFlight: rotation.reduce((sum, { inFlight }) => sum + inFlight, 0) }),
    /** The number of origins that are asked. */
    origins: lanes.size,
    lanes: () => lanes.values(),
  }
}

/** @param what a worker was leased */
export const isAsk = (what: { kind: string }): what is Ask => what.kind === 'ask'

export const admits = (status: number) => status >= 200 && status < 300

export const refuses = (status: number) => status === 401 || status === 403 || status === 404

const twiceLost: Result = {
  kind: 'failed',
  code: 'fetcher_timeout',
  message: 'two workers in a row were lost over this',
}

function replyOf(result: Result, sentAt: number): Reply {
  if (result.kind === 'status') {
    const message = `the backend answered ${result.status} when asked whether this may be read`
    return { status: result.status, message, sentAt, retryAfterMs: result.retryAfterMs }
  }
  const message = result.kind === 'failed' ? result.message : ''
  return { status: undefined, message, sentAt, retryAfterMs: undefined }
}

function labelOf({ status }: Reply) {
  if (status !== undefined && admits(status)) return 'admitted'
  return status !== undefined && refuses(status) ? 'refused' : 'failed'
}

/** The news that a result brings about the backend as a whole. */
function verdictOf(result: Result): Verdict {
  if (result.kind === 'failed') return result.code === 'fetcher_timeout' ? 'void' : 'bad'
  const status = result.kind === 'status' ? result.status : 0
  if (admits(status) || refuses(status)) return 'good'
  return status >= 500 ? 'bad' : 'neutral'
}
