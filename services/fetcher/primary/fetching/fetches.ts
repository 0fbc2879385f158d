// A fetch from start to end: wanted, queued, leased to a worker, ended with a result. At most one per key at a time.
import { idOf } from '@keycast/protocol'
import { type Containment, noContainment } from '@keycast/service'
import type { Lease as LeaseMessage, Result } from '../../work/messages.ts'
import { authorizationOf, mayAsk } from '../keys/credentials.ts'
import { type Entry, sharedKeyOf } from '../keys/entry.ts'
import { isCold, isKept, isWanted } from '../keys/interest.ts'
import type { FetchMetrics } from '../metrics.ts'
import type { Verdict } from '../origins/breaker.ts'
import type { Sign } from '../origins/fetch-limit.ts'
import type { Origin } from '../origins/origins.ts'
import type { InTurns } from '../timing/in-turns.ts'
import type { Lane } from './fetch-queue.ts'

export type Fetches = ReturnType<typeof createFetches>

/**
 * A fetch from the moment it is wanted. Without `sentAt` it is queued in its lane. `attempt`: which worker this is.
 * `again`: what it brings is too old for somebody, so another fetch must follow. `authorization`: the viewer's, that it
 * was sent with.
 */
export interface Fetch {
  kind: 'fetch'
  entry: Entry
  lane: Lane
  queuedAt: number
  sentAt: number | undefined
  attempt: 1 | 2
  probe: boolean
  again: boolean
  authorization?: string
}

/** The part of the workers that fetches need. `lease` must only be called while there is credit. */
export interface Pool {
  hasCredit: () => boolean
  lease: (fetch: Fetch, message: Omit<LeaseMessage, 'type' | 'lease'>) => void
}

/**
 * The ends of fetches. `onResult`: `closed` says that the fetch closed the origin's breaker. `onRefused`: the origin's
 * breaker lets nothing through. `onExpired`: no token of the user whose own value it is is valid any more.
 * `onAbandoned`: nobody wants the key whose worker was lost.
 */
interface FetchEvents {
  onResult: (fetch: Fetch, result: Result, body: Buffer | undefined, delta: Buffer | undefined, closed: boolean) => void
  onRefused: (entry: Entry) => void
  onExpired: (entry: Entry) => void
  onAbandoned: (entry: Entry) => void
}

interface Deps {
  origins: Iterable<Origin>
  pool: Pool
  inTurns: InTurns
  metrics: FetchMetrics
  containment?: Pick<Containment, 'guard'>
  now: () => number
  /** In milliseconds since 1970, as tokens tell the time. */
  wallNow: () => number
}

export function createFetches({ origins, pool, inTurns, metrics, containment = noContainment, now, wallNow }: Deps) {
  const rotation = [...origins]
  /** Backends whose queues are being emptied, because their breakers opened. */
  const refusing = new Set<Origin>()
  let events: FetchEvents

  /**
   * Must be called before the first fetch is wanted. Not given at creation: results set timers, and timers want
   * fetches.
   */
  function start(fetchEvents: FetchEvents) {
    events = fetchEvents
  }

  /**
   * Has the key fetched, unless that is under way. If somebody waits for it, a queued refresh becomes a cold fetch.
   */
  function want(entry: Entry) {
    const { origin, fetch } = entry
    if (fetch) {
      if (fetch.sentAt === undefined && isCold(entry)) origin.queue.promote(fetch)
      return
    }
    if (!mayAsk(entry, wallNow())) return events.onExpired(entry)
    if (!origin.breaker.admits()) return events.onRefused(entry)
    const lane = isCold(entry) ? 'cold' : 'refresh'
    entry.fetch = {
      kind: 'fetch',
      entry,
      lane,
      queuedAt: now(),
      sentAt: undefined,
      attempt: 1,
      probe: false,
      again: false,
    }
    origin.queue.add(entry.fetch)
    startNext(origin)
  }

  /**
   * Has the key fetched for a caller who needs an answer that was asked for at `sinceMs` or later. If the fetch under
   * way is older, another one follows it.
   */
  function wantSince(entry: Entry, sinceMs: number) {
    if (entry.fetch?.sentAt !== undefined && entry.fetch.sentAt < sinceMs) entry.fetch.again = true
    want(entry)
  }

  /**
   * The backend changed. The worker may have read the content before the change, so another fetch follows this one.
   *
   * @returns whether a worker has the key
   */
  function repeat(entry: Entry): boolean {
    if (entry.fetch?.sentAt === undefined) return false
    entry.fetch.again = true
    return true
  }

  /** Nobody wants the key any more: a fetch that no worker has yet is dropped. */
  function abandon(entry: Entry) {
    const { origin, fetch } = entry
    if (!fetch || fetch.sentAt !== undefined) return
    origin.queue.remove(fetch)
    entry.fetch = undefined
    if (fetch.probe) origin.breaker.end('void', true)
  }

  /** Starts the fetches that may start. Backends take turns to be first, in case credit is short. */
  function startAll() {
    if (rotation.length > 1) rotation.push(rotation.shift() as Origin)
    for (const origin of rotation) startNext(origin)
  }

  function startNext(origin: Origin) {
    while (pool.hasCredit()) {
      const fetch = origin.queue.next()
      if (!fetch) return
      if (!fetch.probe && !origin.breaker.admits()) {
        origin.queue.ended(fetch)
        refuse(fetch)
        return refuseQueued(origin)
      }
      if (mayAsk(fetch.entry, wallNow())) send(fetch)
      else expire(fetch)
    }
  }

  /** Nothing that is queued may start until the breaker admits a fetch. */
  function refuseQueued(origin: Origin) {
    const { queue, breaker } = origin
    if (refusing.has(origin)) return
    refusing.add(origin)
    inTurns(() => {
      const fetch = breaker.admits() ? undefined : queue.withdraw()
      if (!fetch) {
        refusing.delete(origin)
        return false
      }
      // The probe's worker was lost. Without this line no other probe would ever be let through.
      if (fetch.probe) breaker.end('void', true)
      refuse(fetch)
      return true
    })
  }

  /** The token expired while the fetch was queued. @param fetch that the queue gave out */
  function expire(fetch: Fetch) {
    const { entry, probe } = fetch
    entry.origin.queue.ended(fetch)
    entry.fetch = undefined
    if (probe) entry.origin.breaker.end('void', true)
    events.onExpired(entry)
  }

  function send(fetch: Fetch) {
    const { entry } = fetch
    const { namespace, origin } = entry
    const { value } = entry.held
    fetch.sentAt = now()
    origin.limit.started(origin.queue.inFlight())
    fetch.probe = origin.breaker.start()
    metrics.started(fetch.lane, fetch.sentAt - fetch.queuedAt)
    const authorization = authorizationOf(entry, wallNow())
    fetch.authorization = authorization
    pool.lease(fetch, {
      key: entry.key,
      // Computed each time: with a million keys the addresses alone would take 100 MB.
      url: namespace.urlFor(idOf(sharedKeyOf(entry))),
      headers: authorization === undefined ? namespace.headers : { ...namespace.headers, authorization },
      timeoutMs: namespace.timeoutMs,
      bytesMax: namespace.bytesMax,
      // No delta answers a get: if nobody watches the key, the delta and the body held for the next one would be
      // wasted.
      delta: isKept(entry),
      version: value?.version,
      etag: value?.etag,
      lastModified: value?.lastModified,
    })
  }

  /** @param fetch that is not queued */
  function refuse({ entry }: Fetch) {
    entry.fetch = undefined
    events.onRefused(entry)
  }

  /** A fetch under a lease in force ended. */
  function ended(fetch: Fetch, result: Result, body?: Buffer, delta?: Buffer) {
    const { entry } = fetch
    const { queue, breaker, limit } = entry.origin
    const sentAt = fetch.sentAt as number
    metrics.ended(entry.origin.name, result, body?.length ?? 0, now() - sentAt)
    limit.ended({ sentAt, namespace: entry.namespace.name, sign: signOf(result, entry.namespace) })
    queue.ended(fetch)
    entry.fetch = undefined
    const change = breaker.end(verdictOf(result), fetch.probe)
    apply(fetch, result, body, delta, change === 'closed')
    if (change === 'opened') refuseQueued(entry.origin)
    startAll()
  }

  /** A result that cannot be applied makes its key fail, like any other that is of no use. */
  const apply = containment.guard(
    'lease',
    (fetch: Fetch, result: Result, body: Buffer | undefined, delta: Buffer | undefined, closed: boolean) =>
      events.onResult(fetch, result, body, delta, closed),
    (fetch, _result, _body, _delta, closed) => events.onResult(fetch, notApplied, undefined, undefined, closed),
  )

  /** The worker that had a fetch will not answer. Another one is asked, once, if somebody still wants the key. */
  function lost(fetch: Fetch) {
    if (fetch.attempt === 2) return ended(fetch, twiceLost)
    const { entry } = fetch
    const { queue } = entry.origin
    queue.ended(fetch)
    fetch.attempt = 2
    fetch.sentAt = undefined
    queue.putBack(fetch)
    if (isWanted(entry)) return metrics.reissued()
    abandon(entry)
    events.onAbandoned(entry)
  }

  /** Whether a user's own value would now be fetched with a token other than this fetch's. */
  function hasOtherToken({ entry, authorization }: Fetch) {
    return isWanted(entry) && authorizationOf(entry, wallNow()) !== authorization
  }

  return { start, hasOtherToken, want, wantSince, repeat, abandon, startAll, ended, lost }
}

const twiceLost: Result = {
  kind: 'failed',
  code: 'fetcher_timeout',
  message: 'two workers in a row ended or fell silent over this key',
}

const notApplied: Result = {
  kind: 'failed',
  code: 'invalid_content',
  message: "the backend's response could not be taken",
}

/** A backend's answers to a token, which it gives without doing any work. */
const turnsAway = new Set<number | undefined>([401, 403, 429])

/** The news that a result brings about the backend's load. */
function signOf(result: Result, { isPerUser }: Entry['namespace']): Sign {
  if (result.kind !== 'failed') return 'answered'
  // A refusal of one user must not slow down all: it is no sign of overload, nor is its latency that of other fetches.
  if (isPerUser && turnsAway.has(result.status)) return 'void'
  switch (result.code) {
    case 'fetcher_timeout':
      return 'void'
    case 'backend_throttled':
    case 'backend_timeout':
    case 'backend_unreachable':
      return 'overloaded'
    default:
      return result.status === 503 ? 'overloaded' : 'answered'
  }
}

/** The news that a result brings about the backend as a whole. */
function verdictOf(result: Result): Verdict {
  if (result.kind !== 'failed') return 'good'
  switch (result.code) {
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
