// The requests that ask backends whether viewers may read: a lane of their own. Each origin has a cap, a queue and a
// breaker beside those of its fetches, so that a flood of viewers stops no fetch, and slow fetches keep no viewer out.
import { ANSWER_GRACE_MS, createUniqueQueue } from '@keycast/service'
import { createBreaker } from '../origins/breaker.ts'

/**
 * @typedef {import('../../work/messages.ts').Result} Result
 * @typedef {import('../origins/breaker.ts').Verdict} Verdict
 * @typedef {ReturnType<typeof createAsks>} Asks
 *
 * How the backend answered. `sentAt`: when it was asked. Without a status there was none.
 * @typedef {{ status: number | undefined, message: string, sentAt: number, retryAfterMs: number | undefined }} Reply
 *
 * One request, from being queued to its end. `authorization` is secret. `attempt`: which worker this is.
 * @typedef {object} Ask
 * @property {'ask'} kind tells it from a fetch
 * @property {string} key names it, and with it the worker that makes it
 * @property {string} url
 * @property {'HEAD' | 'GET'} method
 * @property {string | undefined} authorization
 * @property {number} timeoutMs
 * @property {Lane} lane
 * @property {number} queuedAt
 * @property {number} sentAt
 * @property {1 | 2} attempt
 * @property {boolean} probe
 * @property {(reply: Reply) => void} done
 *
 * @typedef {object} Lane
 * @property {string} origin
 * @property {import('@keycast/service').UniqueQueue<Ask>} queue
 * @property {import('@keycast/service').UniqueQueue<Ask>} returned whose worker was lost: they go first
 * @property {number} inFlight
 * @property {import('../origins/breaker.ts').Breaker} breaker
 * @property {boolean} isRefusing whether its queue is being emptied
 *
 * What asks need of the workers. `lease` must only be called while there is credit.
 * @typedef {object} Pool
 * @property {() => boolean} hasCredit
 * @property {(ask: Ask, message: Omit<import('../../work/messages.ts').Lease, 'type' | 'lease'>) => void} lease
 */

/**
 * Of all lanes together: each holds a token, mostly 1 KB and at most 8. Every lane has an equal share, or one slow backend
 * would have the questions to all others refused.
 */
const QUEUED_MAX = 10_000

/** When to ask again where the queue is full. */
const FULL_RETRY_MS = 1_000

/**
 * @param {object} deps
 * @param {{ get: (name: string) => import('@keycast/service').Deciding | undefined, names: string[] }} deps.namespaces
 * @param {Pool} deps.pool
 * @param {number} deps.cap requests in flight to each origin
 * @param {import('../timing/in-turns.ts').InTurns} deps.inTurns
 * @param {{ asked: (origin: string, verdict: string, tookMs: number) => void }} deps.metrics
 * @param {() => number} deps.now
 * @param {number} [deps.queuedMax]
 */
export function createAsks({ namespaces, pool, cap, inTurns, metrics, now, queuedMax = QUEUED_MAX }) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map()
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

  /** @param {Lane} lane */
  const queuedIn = ({ queue, returned }) => queue.size + returned.size

  function queued() {
    let sum = 0
    for (const lane of rotation) sum += queuedIn(lane)
    return sum
  }

  /**
   * @param {Pick<Ask, 'key' | 'url' | 'method' | 'authorization' | 'timeoutMs' | 'done'> & { origin: string }} wanted
   *   `done` is called once
   */
  function add({ origin, ...wanted }) {
    const lane = /** @type {Lane} */ (lanes.get(origin))
    /** @type {Ask} */
    const ask = { kind: 'ask', ...wanted, lane, queuedAt: now(), sentAt: now(), attempt: 1, probe: false }
    if (!lane.breaker.admits()) return refuse(ask)
    if (queuedIn(lane) >= queuedPerLaneMax) {
      const message = 'too many viewers wait for the backend to be asked'
      return ask.done({ status: undefined, message, sentAt: now(), retryAfterMs: FULL_RETRY_MS })
    }
    lane.queue.add(ask)
    startNext(lane)
  }

  /** @param {Ask} ask that is late, or whose lane's breaker is open */
  function refuse({ lane: { breaker }, done }) {
    if (breaker.admits()) {
      const message = 'the backend answers too slowly to be asked who may read, so many viewers wait'
      return done({ status: undefined, message, sentAt: now(), retryAfterMs: undefined })
    }
    const message = 'the backend failed too often to say who may read: its circuit breaker is open'
    done({ status: undefined, message, sentAt: now(), retryAfterMs: Math.max(0, breaker.retryAt() - now()) })
  }

  function startAll() {
    if (rotation.length > 1) rotation.push(/** @type {Lane} */ (rotation.shift()))
    for (const lane of rotation) startNext(lane)
  }

  /** @param {Lane} lane */
  function startNext(lane) {
    while (lane.inFlight < cap && queuedIn(lane) > 0) {
      if (mustRefuse(lane)) return refuseQueued(lane)
      if (!pool.hasCredit()) return
      send(/** @type {Ask} */ (lane.returned.take() ?? lane.queue.take()))
    }
  }

  /** Nobody waits for the answer to the first any more, or the breaker admits none. @param {Lane} lane with a queue */
  function mustRefuse({ breaker, returned, queue }) {
    const { queuedAt, timeoutMs } = /** @type {Ask} */ (returned.first() ?? queue.first())
    return !breaker.admits() || now() - queuedAt > timeoutMs + ANSWER_GRACE_MS
  }

  /** Refuses what is queued as far as it must be, and goes on with the rest. @param {Lane} lane */
  function refuseQueued(lane) {
    if (lane.isRefusing) return
    lane.isRefusing = true
    inTurns(() => {
      if (queuedIn(lane) > 0 && mustRefuse(lane)) {
        refuse(/** @type {Ask} */ (lane.returned.take() ?? lane.queue.take()))
        return true
      }
      lane.isRefusing = false
      startNext(lane)
      return false
    })
  }

  /** @param {Ask} ask */
  function send(ask) {
    const { lane, key, url, method, authorization, timeoutMs } = ask
    lane.inFlight++
    ask.sentAt = now()
    ask.probe = lane.breaker.start()
    // The viewer's own right to it, and nothing of the namespace's: its headers could open what the viewer may not see.
    /** @type {Record<string, string>} */
    const headers = authorization === undefined ? {} : { authorization }
    pool.lease(ask, { key, url, headers, timeoutMs, bytesMax: 0, delta: false, statusOf: method })
  }

  /**
   * A request under a lease in force ended.
   *
   * @param {Ask} ask
   * @param {Result} result
   */
  function ended(ask, result) {
    const { lane, sentAt } = ask
    lane.inFlight--
    const reply = replyOf(result, sentAt)
    lane.breaker.end(verdictOf(result), ask.probe)
    metrics.asked(lane.origin, labelOf(reply), now() - sentAt)
    ask.done(reply)
    startAll()
  }

  /** The worker that had a request will not answer. Another one is asked, once. @param {Ask} ask */
  function lost(ask) {
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

/** @param {{ kind: string }} what a worker was leased @returns {what is Ask} */
export const isAsk = what => what.kind === 'ask'

/** @param {number} status */
export const admits = status => status >= 200 && status < 300

/** @param {number} status */
export const refuses = status => status === 401 || status === 403 || status === 404

/** @type {Result} */
const twiceLost = { kind: 'failed', code: 'fetcher_timeout', message: 'two workers in a row were lost over this' }

/** @param {Result} result @param {number} sentAt @returns {Reply} */
function replyOf(result, sentAt) {
  if (result.kind === 'status') {
    const message = `the backend answered ${result.status} when asked whether this may be read`
    return { status: result.status, message, sentAt, retryAfterMs: result.retryAfterMs }
  }
  const message = result.kind === 'failed' ? result.message : ''
  return { status: undefined, message, sentAt, retryAfterMs: undefined }
}

/** @param {Reply} reply */
function labelOf({ status }) {
  if (status !== undefined && admits(status)) return 'admitted'
  return status !== undefined && refuses(status) ? 'refused' : 'failed'
}

/** The news that a result brings about the backend as a whole. @param {Result} result @returns {Verdict} */
function verdictOf(result) {
  if (result.kind === 'failed') return result.code === 'fetcher_timeout' ? 'void' : 'bad'
  const status = result.kind === 'status' ? result.status : 0
  if (admits(status) || refuses(status)) return 'good'
  return status >= 500 ? 'bad' : 'neutral'
}
