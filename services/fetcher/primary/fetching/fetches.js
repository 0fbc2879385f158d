// A fetch's way: wanted, waiting in its lane, leased to a worker, answered. One per key at a time.
import { idOf } from '@keycast/protocol'
import { isCold, isKept, isWanted } from '../keys/entry.js'

/**
 * @typedef {import('../../work/messages.js').Lease} LeaseMessage
 * @typedef {import('../../work/messages.js').Outcome} Outcome
 * @typedef {import('../origins/breaker.js').Verdict} Verdict
 * @typedef {import('../keys/entry.js').Entry} Entry
 * @typedef {import('../keys/entry.js').Fetch} Fetch
 * @typedef {import('../origins/origins.js').Origin} Origin
 * @typedef {ReturnType<typeof createFetches>} Fetches
 *
 * What fetches need of the workers. `lease` must only be called while there is credit.
 * @typedef {object} Pool
 * @property {() => boolean} hasCredit
 * @property {(fetch: Fetch, message: Omit<LeaseMessage, 'type' | 'lease'>) => void} lease
 */

/**
 * @param {object} deps
 * @param {Iterable<Origin>} deps.origins
 * @param {Pool} deps.pool
 * @param {(fetch: Fetch, outcome: Outcome, body: Buffer | undefined, delta: Buffer | undefined, closed: boolean) => void}
 *   deps.onOutcome `closed`: it closed the origin's breaker
 * @param {(entry: Entry) => void} deps.onRefused the origin's breaker lets nothing through
 * @param {(entry: Entry) => void} deps.onAbandoned nobody wants the key whose worker was lost
 * @param {import('../metrics.js').FetchMetrics} deps.metrics
 * @param {() => number} deps.now
 */
export function createFetches({ origins, pool, onOutcome, onRefused, onAbandoned, metrics, now }) {
  const rotation = [...origins]

  /**
   * Has the key fetched, unless that is under way. Somebody who waits moves a fetch that waits among refreshes.
   *
   * @param {Entry} entry
   */
  function want(entry) {
    const { origin, fetch } = entry
    if (fetch) {
      if (fetch.sentAt === undefined && isCold(entry)) origin.lanes.promote(fetch)
      return
    }
    if (!origin.breaker.admits()) return onRefused(entry)
    const lane = isCold(entry) ? 'cold' : 'refresh'
    entry.fetch = { entry, lane, queuedAt: now(), sentAt: undefined, attempt: 1, probe: false }
    origin.lanes.add(entry.fetch)
    startNext(origin)
  }

  /**
   * Nobody wants the key any more: what was not sent yet is not.
   *
   * @param {Entry} entry
   */
  function abandon(entry) {
    const { origin, fetch } = entry
    if (!fetch || fetch.sentAt !== undefined) return
    origin.lanes.remove(fetch)
    entry.fetch = undefined
    // What was to follow one that was lost: whoever wants the key next finds it marked as no good.
    entry.again = false
    if (fetch.probe) origin.breaker.end('void', true)
  }

  /** Starts what may start. Backends take turns to be first, in case credit is short. */
  function startAll() {
    if (rotation.length > 1) rotation.push(/** @type {Origin} */ (rotation.shift()))
    for (const origin of rotation) startNext(origin)
  }

  /** @param {Origin} origin */
  function startNext(origin) {
    while (pool.hasCredit()) {
      const fetch = origin.lanes.next()
      if (!fetch) return
      if (fetch.probe || origin.breaker.admits()) {
        start(fetch)
      } else {
        origin.lanes.ended(fetch)
        refuse(fetch)
      }
    }
  }

  /** @param {Fetch} fetch */
  function start(fetch) {
    const { entry } = fetch
    const { namespace, origin, value } = entry
    fetch.sentAt = now()
    origin.startedAt = fetch.sentAt
    fetch.probe = origin.breaker.start()
    metrics.started(fetch.lane, fetch.sentAt - fetch.queuedAt)
    pool.lease(fetch, {
      key: entry.key,
      url: namespace.urlFor(idOf(entry.key)),
      headers: namespace.headers,
      timeoutMs: namespace.timeoutMs,
      bytesMax: namespace.bytesMax,
      // No delta answers a get: where nobody watches it would be made, and the body held for the next one, for nothing.
      delta: isKept(entry),
      version: value?.version,
      etag: value?.etag,
      lastModified: value?.lastModified,
    })
  }

  /** @param {Fetch} fetch that waits in no lane */
  function refuse({ entry }) {
    entry.fetch = undefined
    onRefused(entry)
  }

  /**
   * A fetch under a lease in force ended.
   *
   * @param {Fetch} fetch
   * @param {Outcome} outcome
   * @param {Buffer} [body]
   * @param {Buffer} [delta]
   */
  function ended(fetch, outcome, body, delta) {
    const { entry } = fetch
    const { lanes, breaker } = entry.origin
    metrics.ended(outcome, body?.length ?? 0, now() - /** @type {number} */ (fetch.sentAt))
    lanes.ended(fetch)
    entry.fetch = undefined
    const change = breaker.end(verdictOf(outcome), fetch.probe)
    onOutcome(fetch, outcome, body, delta, change === 'closed')
    if (change === 'opened') for (const waiting of lanes.drain()) refuse(waiting)
    startAll()
  }

  /**
   * The worker that had a fetch will not answer. Another one is asked, once, if somebody still wants the key.
   *
   * @param {Fetch} fetch
   */
  function lost(fetch) {
    if (fetch.attempt === 2) return ended(fetch, twiceLost)
    const { entry } = fetch
    const { lanes } = entry.origin
    lanes.ended(fetch)
    fetch.attempt = 2
    fetch.sentAt = undefined
    lanes.addAgain(fetch)
    if (isWanted(entry)) return metrics.reissued()
    abandon(entry)
    onAbandoned(entry)
  }

  return { want, abandon, startAll, ended, lost }
}

/** @type {Outcome} */
const twiceLost = {
  outcome: 'failed',
  code: 'fetcher_timeout',
  message: 'two workers in a row ended or fell silent over this key',
}

/** What an outcome says of the backend as a whole. @param {Outcome} outcome @returns {Verdict} */
function verdictOf(outcome) {
  if (outcome.outcome !== 'failed') return 'good'
  switch (outcome.code) {
    case 'backend_error':
    case 'backend_timeout':
    case 'backend_unreachable':
      return 'bad'
    case 'fetcher_timeout':
      return 'void'
    default:
      return 'neutral'
  }
}
