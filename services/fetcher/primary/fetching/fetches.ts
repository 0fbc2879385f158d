// A fetch from start to end: wanted, queued, leased to a worker, ended with a result. At most one per key at a time.
import { idOf } from '@keycast/protocol'
import {
  accountsOf,
  type Batch,
  type Containment,
  headersOfKey,
  NO_LANE,
  noContainment,
  type World,
} from '@keycast/service'
import {
  askedAtOf,
  type FailedResult,
  hasFailed,
  type LeaseResult,
  type Result,
  type Work,
} from '../../worker-messages.ts'
import type { FailureLog } from '../failure-log.ts'
import type { Entry } from '../keys/entry.ts'
import { isMissing } from '../keys/held.ts'
import { isCold, isKept, isWanted } from '../keys/interest.ts'
import { authorizationOf, mayAsk, needsOwnToken, sharedKeyOf, viewerOf } from '../keys/viewer.ts'
import type { FetcherMetrics } from '../metrics.ts'
import { verdictOf } from '../origins/breaker.ts'
import { createDispatcher, type Dispatcher, type Request } from '../origins/dispatcher.ts'
import { signOf, turnsUserAway } from '../origins/fetch-limit.ts'
import type { KeySource, KeySources } from '../origins/origins.ts'
import type { InTurns } from '../timing/in-turns.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { Leaseholder, Pool } from '../workers/leases.ts'
import { createBatches } from './batches.ts'
import type { Lane } from './fetch-queue.ts'

export type Fetches = ReturnType<typeof createFetches>

/**
 * A fetch from the moment it is wanted. `again`: what it brings is too old for somebody, so another fetch must follow.
 * `superseded`: the backend handed over a value while it was under way, so what it brings is of no use.
 * `authorization`: the viewer's, that it was sent with.
 */
export interface Fetch extends Request<KeySource> {
  entry: Entry
  again: boolean
  superseded: boolean
  authorization?: string
  /** Of a batch: the fetches that go in the same request, which is this one's. */
  company: Fetch[] | undefined
  /** The source's, when it was sent. */
  requestChanges?: number
  /** When the backend was asked, by this process's clock; absent where no worker said so. */
  askedAt?: number
}

/**
 * The ends of fetches. `onResult`: `closed` says that the fetch closed its namespace's breaker. `onRefused`: that breaker
 * lets nothing through. `onExpired`: no token of the user whose own value it is is valid any more. `onAbandoned`: nobody
 * wants the key whose worker was lost, or that would be asked for again.
 */
interface FetchEvents {
  onResult: (fetch: Fetch, result: Result, body: Buffer | undefined, delta: Buffer | undefined, closed: boolean) => void
  onRefused: (entry: Entry) => void
  onExpired: (entry: Entry) => void
  onAbandoned: (entry: Entry) => void
}

interface Deps {
  sources: Pick<KeySources, 'origins'>
  pool: Pool
  inTurns: InTurns
  metrics: FetcherMetrics
  /** Told of each fetch that failed, or succeeded while none of its namespace's keys was failing. */
  failureLog: FailureLog
  containment?: Containment
  now: () => number
  /** By which workers say when they asked. */
  hostNow: () => number
  /** In milliseconds since 1970, as tokens tell the time. */
  wallNow: () => number
  after: World['after']
  /** Of namespaces that have one. */
  tokens: Pick<Tokens, 'authorizationOf' | 'refused'>
}

export function createFetches({
  sources,
  pool,
  inTurns,
  metrics,
  failureLog,
  containment = noContainment,
  now,
  hostNow,
  wallNow,
  after,
  tokens,
}: Deps) {
  let events: FetchEvents
  const dispatcher: Dispatcher<Fetch> = createDispatcher<Fetch>({
    origins: sources.origins,
    hasCredit: pool.hasCredit,
    inTurns,
    steps: {
      isOver: ({ entry }) => !mayAsk(entry, wallNow()),
      lease,
      refused(fetch) {
        for (const { entry } of batches.underWay(fetch)) {
          entry.fetch = undefined
          refuse(entry)
        }
      },
      isWanted: isStillWanted,
      judge: ({ entry }, result) => ({
        verdict: verdictOf(result),
        sign: signOf(result, entry.namespace),
        who: viewerOf(entry),
      }),
      ended,
    },
    now,
    after,
  })
  const batches = createBatches()

  /**
   * Must be called before the first fetch is wanted. Not given at creation: results set timers, and timers want
   * fetches.
   */
  function start(fetchEvents: FetchEvents) {
    events = fetchEvents
  }

  /**
   * Has the key fetched, unless that is under way. If somebody waits for it now, a queued refresh becomes a cold fetch.
   */
  function want(entry: Entry) {
    const { source, fetch } = entry
    if (fetch) {
      if (fetch.sentAt !== undefined) return
      source.queue.promote(fetch, laneOf(entry))
      source.queue.join(fetch, pathOf(entry))
      return
    }
    if (!mayAsk(entry, wallNow()) || !source.breaker.admits()) return refuse(entry)
    entry.fetch = {
      entry,
      source,
      lane: laneOf(entry),
      path: pathOf(entry),
      queuedAt: now(),
      sentAt: undefined,
      attempt: 1,
      probe: false,
      again: false,
      superseded: false,
      company: entry.namespace.batch && batches.companyOf(entry),
    }
    dispatcher.add(entry.fetch)
  }

  /** @param entry whose user has no valid token, or whose namespace's breaker is open */
  function refuse(entry: Entry) {
    if (mayAsk(entry, wallNow())) events.onRefused(entry)
    else events.onExpired(entry)
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

  /** The key was given a newer value than a worker may bring now. */
  function supersede({ fetch }: Entry) {
    if (fetch?.sentAt !== undefined) fetch.superseded = true
  }

  /** Nobody wants the key any more: a fetch that no worker has yet is dropped. */
  function abandon(entry: Entry) {
    const { source, fetch } = entry
    if (!fetch || fetch.sentAt !== undefined) return
    source.queue.remove(fetch)
    entry.fetch = undefined
    if (fetch.company) batches.leave(fetch)
  }

  function lease(fetch: Fetch) {
    const { entry } = fetch
    if (entry.namespace.batch) return leaseBatch(fetch, entry.namespace, entry.namespace.batch)
    if (fetch.company) batches.dissolve(fetch)
    fetch.authorization = authorizationOf(entry, wallNow())
    noteSent(fetch)
    pool.lease(holder, fetch, workOf(entry, fetch.authorization), bodyOf(entry))
  }

  function noteSent(fetch: Fetch) {
    const { lane, source, queuedAt, sentAt = now() } = fetch
    fetch.superseded = false
    fetch.requestChanges = source.requestChanges
    metrics.started(lane, sentAt - queuedAt)
  }

  /**
   * The request for a key, as of now.
   *
   * @param own the viewer's `Authorization`. It may have expired since it was found that there is one: nobody is asked then
   */
  function workOf(entry: Entry, own?: string): Work {
    const { namespace } = entry
    const { value } = entry.held
    const id = idOf(sharedKeyOf(entry))
    // Conditions are for GET (RFC 9110 section 13.1.2).
    const validators = namespace.bodyFor ? undefined : value
    const authorization = own ?? (needsOwnToken(entry) ? null : tokens.authorizationOf(namespace.name))
    return {
      key: entry.key,
      // Computed each time: with a million keys the addresses alone would take 100 MB.
      url: namespace.urlFor(id),
      redirects: namespace.followsRedirects,
      headers: headersWith(namespace, authorization, namespace.query && headersOfKey(namespace, id)),
      lacksToken: authorization === null || undefined,
      timeoutMs: namespace.timeoutMs,
      bytesMax: namespace.bytesMax,
      // No delta answers a get: if nobody watches the key, the delta and the body held for the next one would be
      // wasted.
      delta: isKept(entry),
      version: value?.version,
      etag: validators?.etag,
      lastModified: validators?.lastModified,
    }
  }

  function leaseBatch(fetch: Fetch, namespace: Entry['namespace'], batch: Batch) {
    const { sentAt = now() } = fetch
    if (!fetch.company) batches.gather(fetch, batch)
    const fetches = batches.underWay(fetch)
    fetch.company = fetches.slice(1)
    for (const one of fetches) {
      one.sentAt = sentAt
      noteSent(one)
    }
    metrics.batched(fetches.length)
    const authorization = tokens.authorizationOf(namespace.name)
    const keys = fetches.map(({ entry }) => {
      const { key, held } = entry
      return { key, id: idOf(key), version: held.value?.version, delta: isKept(entry) }
    })
    pool.lease(holder, fetch, {
      key: `${namespace.name}:`,
      url: batch.urlFor(keys.map(({ id }) => id)),
      redirects: namespace.followsRedirects,
      headers: headersWith(namespace, authorization),
      lacksToken: authorization === null || undefined,
      timeoutMs: namespace.timeoutMs,
      bytesMax: namespace.bytesMax,
      delta: false,
      batch: { items: batch.items, id: batch.id, keys },
    })
  }

  /** @param fetch of a lease */
  function take(fetch: Fetch, result: LeaseResult, body?: Buffer, delta?: Buffer) {
    const askedAt = askedAtOf(result, fetch.sentAt ?? now(), { now, hostNow })
    if (result.nth === undefined) {
      fetch.askedAt = askedAt
      for (const other of fetch.company ?? []) other.askedAt = askedAt
      return dispatcher.ended(fetch, result, body, delta)
    }
    const other = fetch.company?.[result.nth - 1]
    // Said twice, it would end the key's next fetch in place of this one, which nobody would hear of any more.
    if (!other || other.entry.fetch !== other) return
    other.askedAt = askedAt
    finish(other, result, body, delta, false)
  }

  function ended(fetch: Fetch, result: Result, body: Buffer | undefined, delta: Buffer | undefined, closed: boolean) {
    if (!fetch.company) return finish(fetch, result, body, delta, closed)
    if (batches.split(fetch, result, isWantedOrEnds)) return
    const [own, ...others] = batches.underWay(fetch)
    for (const other of others) finish(other, result, undefined, undefined, false)
    batches.note(own, result)
    finish(own, result, body, delta, closed)
  }

  /** The worker that had the fetch will not answer: those that went with it go alone, as it may be one that ended it. */
  function lost(fetch: Fetch) {
    const [, ...others] = fetch.company ? batches.underWay(fetch) : []
    if (fetch.company) fetch.company = []
    dispatcher.lost(fetch)
    for (const other of others) {
      Object.assign(other, { attempt: 2, sentAt: undefined, company: [] })
      if (isStillWanted(other)) other.source.queue.putBack(other)
    }
  }

  /** @param fetch whose worker was lost */
  function isStillWanted(fetch: Fetch): boolean {
    if (!isWantedOrEnds(fetch)) return false
    metrics.reissued()
    return true
  }

  /** @param fetch that no worker has: without it a key that nobody wants is let go of */
  function isWantedOrEnds({ entry }: Fetch): boolean {
    if (isWanted(entry)) return true
    entry.fetch = undefined
    events.onAbandoned(entry)
    return false
  }

  function finish(fetch: Fetch, result: Result, body: Buffer | undefined, delta: Buffer | undefined, closed: boolean) {
    const { entry, source, sentAt = now() } = fetch
    if (hasFailed(result)) failed(entry, result)
    metrics.ended(source.origin.name, result, body?.length ?? 0, now() - sentAt)
    entry.fetch = undefined
    const isOfNow = fetch.requestChanges === source.requestChanges
    apply(fetch, isOfNow ? result : withoutValidators(result), body, delta, closed)
    if (!hasFailed(result)) noteSuccess(entry)
  }

  function failed(entry: Entry, result: FailedResult) {
    if (result.status === 401) tokens.refused(entry.namespace.name)
    if (!turnsUserAway(result, entry.namespace)) failureLog.failed(entry.namespace, result)
  }

  function noteSuccess({ namespace, source }: Entry) {
    // Where nothing failed there is nothing to log.
    if (failureLog.troubles.size > 0 && source.failing.size === 0) failureLog.succeeded(namespace)
  }

  /** A result that cannot be applied makes its key fail, like any other that is of no use. */
  const apply = containment.guard(
    'lease',
    (fetch: Fetch, result: Result, body: Buffer | undefined, delta: Buffer | undefined, closed: boolean) =>
      events.onResult(fetch, result, body, delta, closed),
    (fetch, _result, _body, _delta, closed) => events.onResult(fetch, notApplied, undefined, undefined, closed),
  )

  /** Whether a user's own value would now be fetched with a token other than this fetch's. */
  function hasOtherToken({ entry, authorization }: Fetch) {
    return isWanted(entry) && authorizationOf(entry, wallNow()) !== authorization
  }

  const { startAll } = dispatcher
  const holder: Leaseholder<Fetch> = { ended: take, lost }
  return { start, workOf, hasOtherToken, want, wantSince, repeat, supersede, abandon, startAll, ...holder }
}

/** The backend is asked for something else from now on: its 304 to these validators would speak of that. */
const withoutValidators = (result: Result): Result =>
  result.kind === 'value' || result.kind === 'current'
    ? { ...result, etag: undefined, lastModified: undefined }
    : result

/** Of a POST. */
function bodyOf(entry: Entry): Buffer | undefined {
  const { bodyFor } = entry.namespace
  return bodyFor && Buffer.from(bodyFor(idOf(sharedKeyOf(entry))))
}

/** @param authorization none where the backend is to get none @param ofKey where parameters of the key are sent so */
const headersWith = (
  { headers }: Entry['namespace'],
  authorization: string | null | undefined,
  ofKey?: Record<string, string>,
) => (!authorization && !ofKey ? headers : { ...headers, ...ofKey, ...(authorization && { authorization }) })

/** Accounts take turns, by their names: one that let go of all and comes again is the same. */
const pathOf = ({ holder }: Entry) => (holder ? accountsOf(holder.payer) : NO_LANE)

/** Anybody can make up keys, and those must keep no other waiting. After a refresh call the key may be there. */
function laneOf(entry: Entry): Lane {
  if (isMissing(entry) && !entry.held.invalid) return 'missing'
  return isCold(entry) ? 'cold' : 'refresh'
}

const notApplied: Result = {
  kind: 'failed',
  code: 'invalid_content',
  message: "the backend's response could not be taken",
}
