// When a key that somebody watches is asked again by itself: at a fixed period from a random phase while tries succeed,
// by backoff while they fail.
import { isFailing, isKept } from '../keys/entry.js'

/**
 * @typedef {import('../keys/entry.js').Entry} Entry
 * @typedef {ReturnType<typeof createSchedule>} Schedule
 */

/**
 * Retry-After is how long one ought to wait (RFC 9110 section 10.2.3), by the guess of a backend that may be back sooner. Who
 * looks at the key sees an old value until then, so it is not believed for longer than this: a backend that still means
 * it says so again, at the cost of one request a key.
 */
const PATIENCE_MS_MAX = 300_000

/**
 * @param {object} deps
 * @param {Pick<import('./timer-wheel.js').TimerWheel, 'set' | 'cancel'>} deps.wheel
 * @param {() => import('./backoff.js').Backoff} deps.firstBackoff
 * @param {(entry: Entry) => void} deps.attempt asks the backend, unless that is under way
 * @param {() => number} deps.now
 * @param {() => number} deps.random 0 up to 1
 */
export function createSchedule({ wheel, firstBackoff, attempt, now, random }) {
  /**
   * Somebody watches now, and nobody did. What is held is good enough for the moment.
   *
   * @param {Entry} entry that is answered or failing
   */
  function begin(entry) {
    const { refreshMs } = entry.namespace
    if (isFailing(entry)) {
      noteFailing(entry)
      tryAt(entry, entry.nextTryAt ?? now())
    } else if (refreshMs > 0) {
      // Counted from when the backend was asked, so that what is held is at no time older than a period.
      entry.phaseAt = Math.max(now(), entry.askedAt + random() * refreshMs)
      tryAt(entry, entry.phaseAt)
    }
  }

  /**
   * Nobody watches any more.
   *
   * @param {Entry} entry
   */
  function end(entry) {
    cancel(entry)
    entry.origin.failing.delete(entry)
    entry.phaseAt = undefined
    // Who wants a failing key before its time is told that it fails: backoff holds for those who ask once, too.
    if (!isFailing(entry)) entry.nextTryAt = undefined
  }

  /**
   * The backend gave an answer.
   *
   * @param {Entry} entry
   */
  function succeeded(entry) {
    entry.backoff = undefined
    entry.origin.failing.delete(entry)
    const { refreshMs } = entry.namespace
    if (isKept(entry) && refreshMs > 0) {
      entry.phaseAt ??= now() + random() * refreshMs
      tryAt(entry, nextPeriodOf(entry, refreshMs))
    } else {
      cancel(entry)
      entry.nextTryAt = undefined
    }
  }

  /**
   * A try gave nothing.
   *
   * @param {Entry} entry
   * @param {{ code: string, retryAfterMs?: number }} failure
   */
  function failed(entry, { code, retryAfterMs }) {
    entry.backoff = entry.backoff?.next() ?? firstBackoff()
    entry.backoffAt = now() + entry.backoff.duration
    const nextTryAt = Math.max(entry.backoffAt, now() + Math.min(retryAfterMs ?? 0, PATIENCE_MS_MAX))
    const isPatience = retryAfterMs !== undefined || code === 'backend_throttled'
    entry.notBeforeAt = isPatience ? nextTryAt : Number.NEGATIVE_INFINITY
    noteFailing(entry)
    tryAt(entry, nextTryAt)
  }

  /**
   * Somebody who knows better than the backend's Retry-After has the key tried, once. The key's own backoff holds all the
   * same: it grows with each try that fails, so that telling again and again is no way around being throttled.
   *
   * @param {Entry} entry
   */
  function insist(entry) {
    entry.notBeforeAt = entry.backoffAt
    tryAt(entry, Math.max(now(), entry.backoffAt))
  }

  /**
   * The backend is given a rest: the key is tried by whoever notices its recovery.
   *
   * @param {Entry} entry that fails
   * @param {number} retryAt about then
   */
  function park(entry, retryAt) {
    noteFailing(entry)
    cancel(entry)
    entry.nextTryAt = retryAt
  }

  /** @param {Entry} entry */
  function noteFailing(entry) {
    const { failing } = entry.origin
    failing.delete(entry)
    if (isKept(entry)) failing.add(entry)
  }

  /**
   * Has the key tried at that time and no other; one that nobody watches only remembers it.
   *
   * @param {Entry} entry
   * @param {number} atMs
   */
  function tryAt(entry, atMs) {
    cancel(entry)
    entry.nextTryAt = atMs
    if (isKept(entry)) entry.timer = wheel.set(atMs, () => due(entry))
  }

  /** @param {Entry} entry */
  function due(entry) {
    entry.timer = undefined
    // Set first, so that a refresh still waiting for its turn costs none of the later ones.
    if (!isFailing(entry)) tryAt(entry, nextPeriodOf(entry, entry.namespace.refreshMs))
    attempt(entry)
  }

  /** The next time in the key's phase; those missed are skipped. @param {Entry} entry @param {number} refreshMs */
  function nextPeriodOf(entry, refreshMs) {
    const phaseAt = /** @type {number} */ (entry.phaseAt)
    const periods = Math.max(0, Math.floor((now() - phaseAt) / refreshMs) + 1)
    return phaseAt + periods * refreshMs
  }

  /** @param {Entry} entry */
  function cancel(entry) {
    wheel.cancel(entry.timer)
    entry.timer = undefined
  }

  return { begin, end, succeeded, failed, insist, park, tryAt }
}
