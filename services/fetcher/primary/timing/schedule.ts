// Decides when a watched key is fetched again by itself: at a fixed period from a random phase while fetches succeed,
// by backoff while they fail.
import { backoffMs } from '@keycast/service'
import type { Entry } from '../keys/entry.ts'
import { isFailing, isMissing } from '../keys/held.ts'
import { isKept } from '../keys/interest.ts'
import { forgetAbsence, forgetPeriod, noteAsked } from './absent-keys.ts'
import { QUIET_REFRESH_MS_MIN } from './refreshes-under-way.ts'
import type { Timer } from './timer-wheel.ts'

export type Schedule = ReturnType<typeof createSchedule>

/** Times are whole milliseconds where most keys have them: fractions take 16 bytes each. */
export interface Timing {
  /** The time of some periodic refresh; the others are whole periods away. */
  phaseAt: number | undefined
  /** When the key is tried by itself; for a failing key that nobody watches, when it may be tried again. */
  nextTryAt: number | undefined
  /** Absent while fetches succeed, as for most of a million keys. */
  failures: Failures | undefined
  /** Of the next try. */
  timer: Timer | undefined
}

/** The traces of failed fetches. */
interface Failures {
  /** The backend asked for patience until then. */
  notBeforeAt: number
  /** When the key's own last wait is over, whatever the backend asked for. */
  backoffAt: number
  /** Fetches that failed in a row, and the key's own wait after the last one. */
  count: number
  waitMs: number
  /** When it last was tried before its time because its backend had recovered. */
  wokenAt: number
}

export function newTiming(): Timing {
  return {
    phaseAt: undefined,
    nextTryAt: undefined,
    failures: undefined,
    timer: undefined,
  }
}

const noFailures = (): Failures => ({
  notBeforeAt: Number.NEGATIVE_INFINITY,
  backoffAt: Number.NEGATIVE_INFINITY,
  count: 0,
  waitMs: 0,
  wokenAt: Number.NEGATIVE_INFINITY,
})

/** The end of the time for which the backend asked for patience. */
export const notBeforeAtOf = ({ timing }: Entry) => timing.failures?.notBeforeAt ?? Number.NEGATIVE_INFINITY

/** The last early try of the key because its backend had recovered. */
export const wokenAtOf = ({ timing }: Entry) => timing.failures?.wokenAt ?? Number.NEGATIVE_INFINITY

/**
 * When a key may be tried so again. Otherwise, of many keys that mostly succeed, the few that always fail would be tried
 * at each success.
 */
export const wakeAgainAtOf = (entry: Entry) =>
  wokenAtOf(entry) + Math.max(WAKE_MS_MIN, entry.timing.failures?.waitMs ?? 0)

/** The wait after the first failed fetch is between half of this and all of it; with each further failure it doubles. */
const WAIT_MS_FIRST = 250

/** Of a key that nobody watches, and of one whose `refresh` is shorter. */
const WAIT_MS_MAX = 5_000

/**
 * A longer Retry-After is cut to this. It is the backend's guess (RFC 9110 section 10.2.3), and a viewer sees an old
 * value until then. A backend that still means it says so again, at the cost of one request per key.
 */
const FETCH_PATIENCE_MS_MAX = 300_000

/** A key that was tried early because others succeed is not tried so again for this long, or its own backoff. */
const WAKE_MS_MIN = 5_000

/**
 * A watched key that fails is not asked for more often than one that does not, or a backend that refuses them all would
 * have more to do than one that serves them; but at least once in this time.
 */
const FAILING_MS_MAX = 60_000

const waitMsMax = (entry: Entry) => {
  const { refreshMs } = entry.namespace
  if (!isKept(entry)) return WAIT_MS_MAX
  return refreshMs === 0 ? FAILING_MS_MAX : Math.min(FAILING_MS_MAX, Math.max(WAIT_MS_MAX, refreshMs))
}

/**
 * Keys with `refresh` of 5 s and more come up at multiples of this, and so together: a lease and a result that travel
 * alone cost several times as much as in a batch of fifty. Not longer: a new key waits behind the keys that came up
 * before it.
 */
const TOGETHER_MS = 50

/** Keys that are asked for many at once come up in four crowds each period, at most this far apart. */
const CROWDS = 4
const CROWDS_APART_MS_MAX = 1_000

/** The time at which a periodic refresh comes up. Rounded down, never up, or values would get older than a period. */
function phaseOf(atMs: number, { refreshMs, batch }: Entry['namespace']) {
  if (!batch && refreshMs < QUIET_REFRESH_MS_MIN) return Math.ceil(atMs)
  const togetherMs = batch ? Math.ceil(Math.min(CROWDS_APART_MS_MAX, refreshMs / CROWDS)) : TOGETHER_MS
  return Math.floor(atMs / togetherMs) * togetherMs
}

interface Deps {
  wheel: {
    set: (atMs: number, run: (entry: Entry) => void, entry: Entry) => Timer
    cancel: (timer: Timer | undefined) => void
  }
  refreshes: { begin: (entry: Entry, dueAt: number) => void; end: (entry: Entry) => void }
  /** Has the key fetched, unless that is under way. */
  want: (entry: Entry) => void
  /** Has its backend asked to wait, where it does: see fetching/long-polls.ts. Returns when that is late. */
  beginWait: (entry: Entry) => number | undefined
  now: () => number
  random: () => number
}

export function createSchedule({ wheel, refreshes, want, beginWait, now, random }: Deps) {
  /**
   * The first watcher of a key came, and the held state is good enough for now.
   *
   * @param entry that is answered or failing
   */
  function begin(entry: Entry) {
    const { refreshMs } = entry.namespace
    if (isFailing(entry)) {
      noteFailing(entry)
      tryAt(entry, entry.timing.nextTryAt ?? now())
    } else if (refreshMs > 0) {
      // Counted from when the backend was asked, so that the held state never gets older than a period.
      entry.timing.phaseAt = phaseOf(Math.max(now(), entry.held.askedAt + random() * refreshMs), entry.namespace)
      tryAt(entry, entry.timing.phaseAt)
    }
  }

  /**
   * Another node had the key: it is tried when that node would have.
   *
   * @param atMs at most a period away
   */
  function takeOver(entry: Entry, atMs: number) {
    entry.timing.phaseAt = phaseOf(atMs, entry.namespace)
    tryAt(entry, entry.timing.phaseAt)
  }

  /** The last watcher of a key left. */
  function end(entry: Entry) {
    cancel(entry)
    refreshes.end(entry)
    entry.source.failing.delete(entry)
    entry.timing.phaseAt = undefined
    forgetPeriod(entry)
    // A get before that time is answered with the failure: backoff also holds for keys that nobody watches.
    if (!isFailing(entry)) entry.timing.nextTryAt = undefined
  }

  /** The backend gave an answer. */
  function succeeded(entry: Entry) {
    recovered(entry)
    entry.source.failing.delete(entry)
    if (isMissing(entry)) noteAsked(entry, now())
    else if (entry.absence) forgetAbsence(entry)
    const { refreshMs } = entry.namespace
    if (isKept(entry) && refreshMs > 0) {
      entry.timing.phaseAt ??= phaseOf(now() + random() * refreshMs, entry.namespace)
      tryAt(entry, nextPeriodOf(entry))
    } else {
      cancel(entry)
      entry.timing.nextTryAt = undefined
    }
  }

  /** A fetch failed. */
  function failed(entry: Entry, { code, retryAfterMs }: { code: string; retryAfterMs?: number }) {
    const failures = failuresOf(entry)
    const waits = { firstMs: WAIT_MS_FIRST, maxMs: waitMsMax(entry) }
    failures.waitMs = backoffMs(++failures.count, waits, random)
    failures.backoffAt = now() + failures.waitMs
    const nextTryAt = Math.max(failures.backoffAt, now() + Math.min(retryAfterMs ?? 0, FETCH_PATIENCE_MS_MAX))
    const isPatience = retryAfterMs !== undefined || code === 'backend_throttled'
    failures.notBeforeAt = isPatience ? nextTryAt : Number.NEGATIVE_INFINITY
    noteFailing(entry)
    tryAt(entry, nextTryAt)
  }

  /**
   * Forces one try despite the backend's Retry-After: a refresh call reported a change. As much of the key's own backoff
   * as keys with a short `refresh` have holds all the same, and grows with each failure. So repeated refresh calls do
   * not get around throttling.
   */
  function insist(entry: Entry) {
    const failures = failuresOf(entry)
    const { waitMs, backoffAt } = failures
    failures.notBeforeAt = backoffAt - Math.max(0, waitMs - WAIT_MS_MAX)
    tryAt(entry, Math.max(now(), failures.notBeforeAt))
  }

  function failuresOf({ timing }: Entry) {
    timing.failures ??= noFailures()
    return timing.failures
  }

  /** A fetch succeeded: the traces of failed ones go once none of their times is to come. */
  function recovered({ timing }: Entry) {
    const { failures } = timing
    if (!failures) return
    failures.count = 0
    failures.waitMs = 0
    const { notBeforeAt, backoffAt, wokenAt } = failures
    if (Math.max(notBeforeAt, backoffAt, wokenAt + WAKE_MS_MIN) <= now()) timing.failures = undefined
  }

  /**
   * The backend's breaker is open: recovery.ts tries the key when the backend works again.
   *
   * @param entry that fails
   * @param retryAt about then
   */
  function park(entry: Entry, retryAt: number) {
    noteFailing(entry)
    cancel(entry)
    entry.timing.nextTryAt = retryAt
  }

  function noteFailing(entry: Entry) {
    const { failing } = entry.source
    failing.delete(entry)
    if (isKept(entry)) failing.add(entry)
  }

  /** Has the key tried at this time and no other; a key that nobody watches only remembers it. */
  function tryAt(entry: Entry, atMs: number) {
    cancel(entry)
    entry.timing.nextTryAt = Math.ceil(atMs)
    if (isKept(entry)) entry.timing.timer = wheel.set(atMs, due, entry)
  }

  function due(entry: Entry) {
    entry.timing.timer = undefined
    // Set first, so that a refresh that is still queued delays none of the later ones.
    if (!isFailing(entry) && entry.namespace.refreshMs > 0) {
      const lateAt = entry.namespace.waitMs === undefined ? undefined : beginWait(entry)
      if (lateAt !== undefined) return tryAt(entry, lateAt)
      refreshes.begin(entry, entry.timing.nextTryAt ?? now())
      tryAt(entry, nextPeriodOf(entry))
    }
    want(entry)
  }

  /** The next time in the key's phase; those missed are skipped. @param entry of a namespace that is refreshed */
  function nextPeriodOf({ timing, namespace, absence }: Entry) {
    timing.phaseAt ??= Math.ceil(now())
    const { phaseAt } = timing
    // The namespace's may be longer by now, or the first one.
    const periodMs = Math.max(namespace.refreshMs, absence?.periodMs ?? 0)
    const periods = Math.max(0, Math.floor((now() - phaseAt) / periodMs) + 1)
    return phaseAt + periods * periodMs
  }

  /** Has a failing key tried before its time: its backend has recovered. */
  function wake(entry: Entry, atMs: number) {
    failuresOf(entry).wokenAt = now()
    tryAt(entry, atMs)
  }

  /** The next want of the key has it tried at once. @param entry that nobody watches */
  function forgetBackoff(entry: Entry) {
    entry.timing.nextTryAt = undefined
  }

  function cancel(entry: Entry) {
    wheel.cancel(entry.timing.timer)
    entry.timing.timer = undefined
  }

  return { begin, tryAt, takeOver, end, succeeded, failed, insist, park, wake, forgetBackoff }
}
