// How the keys of a failing backend find out that it is back, sooner than each would by its own backoff, without a
// storm: one of them is tried each second, and when some key's try succeeds they follow, spread over a second.

/**
 * @typedef {import('../keys/entry.js').Entry} Entry
 * @typedef {import('./origins.js').Origin} Origin
 * @typedef {ReturnType<typeof createRecovery>} Recovery
 */

/** A backend some of whose keys fail is asked at least this often. */
const LOOK_MS = 1_000

/** All keys of a backend that is back are tried within this time. */
const SPREAD_MS = 1_000

/**
 * A key tried before its time because others succeed is not tried so again for this long: where some keys always fail
 * among many that do not, they would be tried at each success.
 */
const WAKE_MS_MIN = 5_000

/**
 * @param {object} deps
 * @param {Pick<import('../timing/timer-wheel.js').TimerWheel, 'set' | 'cancel'>} deps.wheel
 * @param {Pick<import('../timing/schedule.js').Schedule, 'tryAt'>} deps.schedule
 * @param {(entry: Entry) => void} deps.attempt asks the backend, unless that is under way
 * @param {() => number} deps.now
 * @param {() => number} deps.random 0 up to 1
 */
export function createRecovery({ wheel, schedule, attempt, now, random }) {
  /**
   * A try of some key ended, and everything else that follows from it is done.
   *
   * @param {Origin} origin
   * @param {boolean} succeeded
   * @param {boolean} closed its breaker closed
   */
  function tried(origin, succeeded, closed) {
    if (closed || (succeeded && now() - origin.wokenAt >= SPREAD_MS)) wake(origin, closed)
    look(origin)
  }

  /**
   * @param {Origin} origin
   * @param {boolean} all also keys woken a moment ago: with the breaker open none was tried by itself
   */
  function wake(origin, all) {
    if (origin.failing.size === 0) return
    const nowMs = now()
    origin.wokenAt = nowMs
    for (const entry of origin.failing) {
      if (entry.fetch || (!all && nowMs - entry.wokenAt < WAKE_MS_MIN)) continue
      const wokenAt = Math.max(nowMs + random() * SPREAD_MS, entry.notBeforeAt)
      if (entry.timer && entry.nextTryAt !== undefined && entry.nextTryAt <= wokenAt) continue
      entry.wokenAt = nowMs
      schedule.tryAt(entry, wokenAt)
    }
  }

  /**
   * Tries one key if it is time, and looks again when it is.
   *
   * @param {Origin} origin
   */
  function look(origin) {
    wheel.cancel(origin.lookTimer)
    origin.lookTimer = undefined
    const { breaker, failing, startedAt } = origin
    if (failing.size === 0) return
    // Whatever was started a moment ago, for any key, will tell as well.
    let dueAt = breaker.isOpen() ? breaker.probeAt() : startedAt + LOOK_MS
    if (dueAt <= now()) {
      if (breaker.admits()) tryOne(failing)
      dueAt = now() + LOOK_MS
    }
    origin.lookTimer = wheel.set(dueAt, () => look(origin))
  }

  /** @param {Set<Entry>} failing */
  function tryOne(failing) {
    const nowMs = now()
    for (const entry of failing) {
      if (entry.fetch || entry.notBeforeAt > nowMs) continue
      return attempt(entry)
    }
  }

  return { tried, look }
}
