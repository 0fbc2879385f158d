// Decides when a watched key is fetched again by itself: at a fixed period from a random phase while fetches succeed,
// by backoff while they fail.
import { isFailing, isMissing } from '../keys/held.ts'
import { isKept } from '../keys/interest.ts'
import { QUIET_REFRESH_MS_MIN } from './refreshes-under-way.ts'

/**
 * @typedef {import('../keys/entry.ts').Entry} Entry
 * @typedef {ReturnType<typeof createSchedule>} Schedule
 *
 * Times are whole milliseconds where most keys have them: fractions take 16 bytes each.
 * @typedef {object} Timing
 * @property {number | undefined} phaseAt the time of some periodic refresh; the others are whole periods away
 * @property {number | undefined} nextTryAt when the key is tried by itself; for a failing key that nobody watches, when
 *   it may be tried again
 * @property {number | undefined} absenceMs the period of a key that the backend never had
 * @property {Failures | undefined} failures absent while fetches succeed, as for most of a million keys
 * @property {import('./timer-wheel.ts').Timer | undefined} timer of the next try
 *
 * The traces of failed fetches.
 * @typedef {object} Failures
 * @property {number} notBeforeAt the backend asked for patience until then
 * @property {number} backoffAt when the key's own last wait is over, whatever the backend asked for
 * @property {import('./backoff.ts').Backoff | undefined} backoff while fetches fail
 * @property {number} wokenAt when it last was tried before its time because its backend had recovered
 */

/** @returns {Timing} */
export function newTiming() {
  return {
    phaseAt: undefined,
    nextTryAt: undefined,
    absenceMs: undefined,
    failures: undefined,
    timer: undefined,
  }
}

/** @returns {Failures} */
const noFailures = () => ({
  notBeforeAt: Number.NEGATIVE_INFINITY,
  backoffAt: Number.NEGATIVE_INFINITY,
  backoff: undefined,
  wokenAt: Number.NEGATIVE_INFINITY,
})

/** The end of the time for which the backend asked for patience. @param {Pick<Entry, 'timing'>} entry */
export const notBeforeAtOf = ({ timing }) => timing.failures?.notBeforeAt ?? Number.NEGATIVE_INFINITY

/** The last early try of the key because its backend had recovered. @param {Pick<Entry, 'timing'>} entry */
export const wokenAtOf = ({ timing }) => timing.failures?.wokenAt ?? Number.NEGATIVE_INFINITY

/**
 * A longer Retry-After is cut to this. It is the backend's guess (RFC 9110 section 10.2.3), and a viewer sees an old
 * value until then. A backend that still means it says so again, at the cost of one request per key.
 */
const FETCH_PATIENCE_MS_MAX = 300_000

/**
 * A key that the backend never had is asked for less and less often, down to this. Anybody can watch invented keys, and
 * a backend with a new value can call `POST /v1/refresh`.
 */
const ABSENCE_MS_MAX = 60_000

/**
 * A key that was tried early because others succeed is not tried so again for this long. Otherwise, of many keys that
 * mostly succeed, the few that always fail would be tried at each success.
 */
export const WAKE_MS_MIN = 5_000

/**
 * Keys with `refresh` of 5 s and more come up at multiples of this, and so together: a lease and a result that travel
 * alone cost several times as much as in a batch of fifty. Not longer: a new key waits behind the keys that came up
 * before it.
 */
const TOGETHER_MS = 50

/**
 * The time at which a periodic refresh comes up. Rounded down, never up, or values would get older than a period.
 *
 * @param {number} atMs
 * @param {number} refreshMs
 */
const phaseOf = (atMs, refreshMs) =>
  refreshMs >= QUIET_REFRESH_MS_MIN ? Math.floor(atMs / TOGETHER_MS) * TOGETHER_MS : Math.ceil(atMs)

/**
 * @param {object} deps
 * @param {Pick<import('./timer-wheel.ts').TimerWheel, 'set' | 'cancel'>} deps.wheel
 * @param {() => import('./backoff.ts').Backoff} deps.firstBackoff
 * @param {Pick<import('./refreshes-under-way.ts').Refreshes, 'begin' | 'end'>} deps.refreshes
 * @param {(entry: Entry) => void} deps.want has the key fetched, unless that is under way
 * @param {() => number} deps.now
 * @param {() => number} deps.random 0 up to 1
 */
export function createSchedule({ wheel, firstBackoff, refreshes, want, now, random }) {
  /**
   * The first watcher of a key came, and the held state is good enough for now.
   *
   * @param {Entry} entry that is answered or failing
   */
  function begin(entry) {
    const { refreshMs } = entry.namespace
    if (isFailing(entry)) {
      noteFailing(entry)
      tryAt(entry, entry.timing.nextTryAt ?? now())
    } else if (refreshMs > 0) {
      // Counted from when the backend was asked, so that the held state never gets older than a period.
      entry.timing.phaseAt = phaseOf(Math.max(now(), entry.held.askedAt + random() * refreshMs), refreshMs)
      tryAt(entry, entry.timing.phaseAt)
    }
  }

  /**
   * Another node had the key: it is tried when that node would have.
   *
   * @param {Entry} entry
   * @param {number} atMs at most a period away
   */
  function takeOver(entry, atMs) {
    entry.timing.phaseAt = phaseOf(atMs, entry.namespace.refreshMs)
    tryAt(entry, entry.timing.phaseAt)
  }

  /**
   * The last watcher of a key left.
   *
   * @param {Entry} entry
   */
  function end(entry) {
    cancel(entry)
    refreshes.end(entry)
    entry.origin.failing.delete(entry)
    entry.timing.phaseAt = undefined
    entry.timing.absenceMs = undefined
    // A get before that time is answered with the failure: backoff also holds for keys that nobody watches.
    if (!isFailing(entry)) entry.timing.nextTryAt = undefined
  }

  /**
   * The backend gave an answer.
   *
   * @param {Entry} entry
   */
  function succeeded(entry) {
    recovered(entry)
    entry.origin.failing.delete(entry)
    const { refreshMs } = entry.namespace
    if (isKept(entry) && refreshMs > 0) {
      entry.timing.phaseAt ??= phaseOf(now() + random() * refreshMs, refreshMs)
      entry.timing.absenceMs = isMissing(entry) ? nextAbsenceMs(entry) : undefined
      tryAt(entry, nextPeriodOf(entry))
    } else {
      cancel(entry)
      entry.timing.nextTryAt = undefined
    }
  }

  /**
   * A fetch failed.
   *
   * @param {Entry} entry
   * @param {{ code: string, retryAfterMs?: number }} failure
   */
  function failed(entry, { code, retryAfterMs }) {
    const failures = failuresOf(entry)
    failures.backoff = failures.backoff?.next() ?? firstBackoff()
    failures.backoffAt = now() + failures.backoff.duration
    const nextTryAt = Math.max(failures.backoffAt, now() + Math.min(retryAfterMs ?? 0, FETCH_PATIENCE_MS_MAX))
    const isPatience = retryAfterMs !== undefined || code === 'backend_throttled'
    failures.notBeforeAt = isPatience ? nextTryAt : Number.NEGATIVE_INFINITY
    noteFailing(entry)
    tryAt(entry, nextTryAt)
  }

  /**
   * Forces one try despite the backend's Retry-After: a refresh call reported a change. The key's own backoff holds all
   * the same and grows with each failure. So repeated refresh calls do not get around throttling.
   *
   * @param {Entry} entry
   */
  function insist(entry) {
    const failures = failuresOf(entry)
    failures.notBeforeAt = failures.backoffAt
    tryAt(entry, Math.max(now(), failures.backoffAt))
  }

  /** @param {Entry} entry */
  function failuresOf({ timing }) {
    timing.failures ??= noFailures()
    return timing.failures
  }

  /** A fetch succeeded: the traces of failed ones go once none of their times is to come. @param {Entry} entry */
  function recovered({ timing }) {
    const { failures } = timing
    if (!failures) return
    failures.backoff = undefined
    const { notBeforeAt, backoffAt, wokenAt } = failures
    if (Math.max(notBeforeAt, backoffAt, wokenAt + WAKE_MS_MIN) <= now()) timing.failures = undefined
  }

  /**
   * The backend's breaker is open: recovery.ts tries the key when the backend works again.
   *
   * @param {Entry} entry that fails
   * @param {number} retryAt about then
   */
  function park(entry, retryAt) {
    noteFailing(entry)
    cancel(entry)
    entry.timing.nextTryAt = retryAt
  }

  /** @param {Entry} entry */
  function noteFailing(entry) {
    const { failing } = entry.origin
    failing.delete(entry)
    if (isKept(entry)) failing.add(entry)
  }

  /**
   * Has the key tried at this time and no other; a key that nobody watches only remembers it.
   *
   * @param {Entry} entry
   * @param {number} atMs
   */
  function tryAt(entry, atMs) {
    cancel(entry)
    entry.timing.nextTryAt = Math.ceil(atMs)
    if (isKept(entry)) entry.timing.timer = wheel.set(atMs, due, entry)
  }

  /** @param {Entry} entry */
  function due(entry) {
    entry.timing.timer = undefined
    // Set first, so that a refresh that is still queued delays none of the later ones.
    if (!isFailing(entry) && entry.namespace.refreshMs > 0) {
      refreshes.begin(entry, entry.timing.nextTryAt ?? now())
      tryAt(entry, nextPeriodOf(entry))
    }
    want(entry)
  }

  /** The next time in the key's phase; those missed are skipped. @param {Entry} entry of a namespace that is refreshed */
  function nextPeriodOf({ timing, namespace }) {
    timing.phaseAt ??= Math.ceil(now())
    const { phaseAt, absenceMs } = timing
    const periodMs = absenceMs ?? namespace.refreshMs
    const periods = Math.max(0, Math.floor((now() - phaseAt) / periodMs) + 1)
    return phaseAt + periods * periodMs
  }

  /** @param {Entry} entry @returns {number} */
  function nextAbsenceMs({ timing, namespace: { refreshMs } }) {
    if (timing.absenceMs === undefined) return refreshMs
    return Math.max(refreshMs, Math.min(timing.absenceMs * 2, ABSENCE_MS_MAX))
  }

  /** A key that the backend never had may exist now: it returns to its normal period. @param {Entry} entry */
  function forgetAbsence(entry) {
    entry.timing.absenceMs = undefined
  }

  /**
   * Has a failing key tried before its time: its backend has recovered.
   *
   * @param {Entry} entry
   * @param {number} atMs
   */
  function wake(entry, atMs) {
    failuresOf(entry).wokenAt = now()
    tryAt(entry, atMs)
  }

  /** The next want of the key has it tried at once. @param {Entry} entry that nobody watches */
  function forgetBackoff(entry) {
    entry.timing.nextTryAt = undefined
  }

  /** @param {Entry} entry */
  function cancel(entry) {
    wheel.cancel(entry.timing.timer)
    entry.timing.timer = undefined
  }

  return { begin, takeOver, end, succeeded, failed, insist, park, wake, forgetBackoff, forgetAbsence }
}
