// Long polling of backends (`refresh: wait`): a backend is asked with If-None-Match and `Prefer: wait` (RFC 7240 section
// 4.3), and answers once there is another value. Waits have places of their own, beside those of fetches, and no queue: a
// key that finds none is fetched each period, as where the backend knows no waiting.
import { askedAtOf, type LeaseResult, type Result, type Work } from '../../worker-messages.ts'
import type { Entry } from '../keys/entry.ts'
import { isFailing } from '../keys/held.ts'
import { isKept } from '../keys/interest.ts'
import { mayAsk } from '../keys/viewer.ts'
import type { FetcherMetrics } from '../metrics.ts'
import type { Leaseholder, Pool } from '../workers/leases.ts'
import type { Ended } from './results.ts'

/** To each backend: a wait holds a connection here and one there. */
export const WAITS_MAX = 1_000

/** A backend that did not say that it waits is tried again after this, by one key of the namespace. */
const TRY_AGAIN_MS = 60_000

/**
 * Two waits of a key begin at least this far apart. One that ends sooner doubles it for the key, up to a refresh: a backend
 * may answer each at once, with other bytes each time. One that lasts longer halves it.
 */
const AGAIN_MS_MIN = 50

/** A worker reports the end of a wait before that. */
const LATE_MS = 2_000

/**
 * `origin`: it is counted there; its namespace may have another by the time it ends. The rest says what was held when it
 * began: its value is of use only if that is still so.
 */
export interface Wait {
  entry: Entry
  origin: string
  sentAt: number
  heldAskedAt: number
  heldEtag: string
}

/** Whether the backend of a namespace waits. `triedAt`: when it last was asked to, without an answer that it does. */
interface Knowledge {
  waits: boolean
  triedAt: number
}

interface WaitEvents {
  /** The request for a key, which is to wait. */
  workOf: (entry: Entry) => Work
  isHeld: (entry: Entry) => boolean
  want: (entry: Entry) => void
  /** @param fetch as one that was asked for when its response came */
  onResult: (fetch: Ended, result: Result, body: Buffer | undefined, delta: Buffer | undefined, closed: boolean) => void
  /** The key is to be tried then. */
  tryAt: (entry: Entry, atMs: number) => void
}

interface Deps {
  pool: Pool
  metrics: Pick<FetcherMetrics, 'waited'>
  now: () => number
  hostNow: () => number
  wallNow: () => number
  /** `waitsMax`: to all backends, as many as workers have credit for beside that of fetches. */
  settings: { waitsMax: number }
}

export function createLongPolls({ pool, metrics, now, hostNow, wallNow, settings: { waitsMax } }: Deps) {
  let events: WaitEvents
  /** The latest wait of each key. */
  const latest = new Map<Entry, Wait>()
  /** By origin, those that nobody cares for any more among them. */
  const underWay = new Map<string, number>()
  let all = 0
  /** By namespace. */
  const known = new Map<string, Knowledge>()
  /** How far apart the waits of a key begin, where that is more than the least. */
  const apart = new WeakMap<Entry, number>()

  /**
   * The key's time has come: has the backend asked to wait, unless it does already for this key.
   *
   * @returns when it is late; `undefined` if the key is to be fetched
   */
  function begin(entry: Entry): number | undefined {
    const { namespace, source, held, fetch } = entry
    const { waitMs, timeoutMs } = namespace
    if (!waitMs || held.value?.etag === undefined || held.invalid || fetch) return undefined
    const before = latest.get(entry)
    if (before && !isVoid(before)) return lateAt(before)
    const origin = source.origin.name
    const count = underWay.get(origin) ?? 0
    if (all >= waitsMax || count >= WAITS_MAX || !pool.hasCredit()) return undefined
    if (!source.breaker.admits() || !mayAsk(entry, wallNow()) || !mayTry(namespace.name)) return undefined
    const wait: Wait = {
      entry,
      origin,
      sentAt: now(),
      heldAskedAt: held.askedAt,
      heldEtag: held.value.etag,
    }
    latest.set(entry, wait)
    underWay.set(origin, count + 1)
    all++
    pool.lease(holder, wait, { ...events.workOf(entry), timeoutMs: waitMs + timeoutMs, waitSeconds: waitMs / 1_000 })
    return lateAt(wait)
  }

  const lateAt = ({ sentAt, entry: { namespace } }: Wait) =>
    sentAt + (namespace.waitMs ?? 0) + namespace.timeoutMs + LATE_MS

  /** Until the backend has said that it waits, one key asks at a time. */
  function mayTry(name: string) {
    const { waits, triedAt } = known.get(name) ?? { waits: false, triedAt: Number.NEGATIVE_INFINITY }
    if (waits) return true
    if (now() - triedAt < TRY_AGAIN_MS) return false
    known.set(name, { waits, triedAt: now() })
    return true
  }

  /** The key was asked for beside it, or handed over, or is asked for elsewhere by now (keycast.yaml): nobody knows which of the two is newer. Or nobody watches it. */
  function isVoid({ entry, heldAskedAt, heldEtag }: Wait) {
    const { held, fetch } = entry
    const isSame = held.askedAt === heldAskedAt && held.value?.etag === heldEtag && !held.invalid
    return !isSame || fetch?.sentAt !== undefined || !events.isHeld(entry) || !isKept(entry)
  }

  /** @returns whether its end is of any use */
  function leave(wait: Wait) {
    const { origin } = wait
    underWay.set(origin, (underWay.get(origin) ?? 0) - 1)
    all--
    const isOfUse = latest.get(wait.entry) === wait && !isVoid(wait)
    if (latest.get(wait.entry) === wait) latest.delete(wait.entry)
    return isOfUse
  }

  function ended(wait: Wait, result: LeaseResult, body: Buffer | undefined, delta: Buffer | undefined) {
    const { entry, sentAt, origin } = wait
    const { namespace } = entry
    const isOfUse = leave(wait)
    const hasAnswered = result.kind === 'value' || result.kind === 'current'
    const waited = hasAnswered && result.waited === true
    // A backend that failed said nothing about that.
    if (hasAnswered && waited !== known.get(namespace.name)?.waits) {
      known.set(namespace.name, { waits: waited, triedAt: now() })
    }
    metrics.waited(origin, isOfUse ? endOf(result) : 'void')
    if (!isOfUse) return
    // An ordinary fetch says what is wrong, and whether anything is.
    if (!hasAnswered) return events.want(entry)
    // The response is the news: it is as old as itself, and not as the request.
    const at = now()
    const askedAt = askedAtOf(result, sentAt, { now, hostNow })
    const fetch = { entry, again: false, superseded: false, queuedAt: at, sentAt: at, askedAt }
    events.onResult(fetch, result, body, delta, false)
    if (!waited || isFailing(entry) || !isKept(entry)) return
    // Otherwise a backend that takes no time to say that nothing changed would be asked all the time.
    const isSoon = result.kind === 'current' && at - sentAt < namespace.refreshMs
    events.tryAt(entry, isSoon ? at + namespace.refreshMs : Math.max(at, sentAt + apartMs(entry, at - sentAt)))
  }

  /** @param lastedMs the wait that just ended */
  function apartMs(entry: Entry, lastedMs: number) {
    const before = apart.get(entry) ?? AGAIN_MS_MIN
    const ms = lastedMs < AGAIN_MS_MIN ? Math.min(before * 2, entry.namespace.refreshMs) : before / 2
    if (ms > AGAIN_MS_MIN) apart.set(entry, ms)
    else apart.delete(entry)
    return Math.max(ms, AGAIN_MS_MIN)
  }

  /** Its worker is gone. */
  function lost(wait: Wait) {
    if (leave(wait)) events.want(wait.entry)
  }

  const holder: Leaseholder<Wait> = { ended, lost }
  return {
    /** Not given at creation: results set timers, and timers want waits. */
    start(given: WaitEvents) {
      events = given
    },
    begin,
    ...holder,
    /** By origin. */
    underWay: () => underWay,
  }
}

function endOf({ kind }: Result) {
  if (kind === 'value') return 'changed'
  return kind === 'current' ? 'unchanged' : 'failed'
}
