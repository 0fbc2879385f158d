// Decides when the subscribers of a key must be told of a trouble: its last try failed, or the fetcher is silent.
import { ANSWER_GRACE_MS } from './values.js'

/**
 * @typedef {import('./entry.js').Entry} Entry
 * @typedef {ReturnType<typeof createStaleness>} Staleness
 */

/**
 * Silence of a fetcher that is alive counts this much later than its word would: it gives a worker's lease as long over
 * the timeout before it reports a failure.
 */
const LEASE_GRACE_MS = 1_000

/** How often a key that nothing is known of is looked at again: what its trouble is called may change. */
const LOOK_AGAIN_MS = 1_000

/**
 * @param {object} deps
 * @param {Pick<import('./values.js').Values, 'silence'>} deps.values
 * @param {Pick<import('./calendar.js').Deadlines, 'schedule'>} deps.deadlines
 * @param {Pick<import('@keycast/backbone').Backbone, 'nodesAlive'>} deps.backbone
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createStaleness({ values, deadlines, backbone, now }) {
  /**
   * To be asked when a watched key's state changed and when its deadline is over; sets the next deadline itself.
   *
   * @param {Entry} entry
   * @returns {boolean} whether every subscriber must be told of the entry's `problem` now
   */
  function judge(entry) {
    if (entry.subscriptions.length === 0) return false
    return entry.value ? judgeHeld(entry) : judgeMissing(entry)
  }

  /**
   * Nothing is held: the first failed try is told, and after it each change of what is wrong.
   *
   * @param {Entry} entry
   */
  function judgeMissing(entry) {
    if (!entry.problem || entry.problem.local) {
      const dueAtMs = entry.watchedAtMs + entry.namespace.timeoutMs + ANSWER_GRACE_MS
      if (!entry.problem && now() < dueAtMs) {
        deadlines.schedule(entry, dueAtMs)
        return false
      }
      entry.problem = values.silence()
      deadlines.schedule(entry, now() + LOOK_AGAIN_MS)
    }
    if (entry.told === entry.problem.code) return false
    entry.told = entry.problem.code
    entry.troubleFrame = undefined
    return true
  }

  /**
   * A value is held: it is stale when it is older than it may get while the fetcher's tries succeed. Told once.
   *
   * @param {Entry} entry
   */
  function judgeHeld(entry) {
    if (entry.stale) return false
    const staleAtMs = staleFrom(entry)
    if (now() < staleAtMs) {
      deadlines.schedule(entry, staleAtMs)
      return false
    }
    entry.problem ??= values.silence()
    entry.stale = true
    entry.troubleFrame = undefined
    return true
  }

  /** @param {Entry} entry @returns {number} the time to look again, or to call it stale if that is not to come */
  function staleFrom({ namespace, askedAtMs, watchedAtMs, answered, problem }) {
    const limitAtMs = askedAtMs + namespace.refreshMs + namespace.timeoutMs
    if (problem) return limitAtMs
    if (!answered) return watchedAtMs + namespace.timeoutMs + ANSWER_GRACE_MS
    const alive = backbone.nodesAlive() > 0
    // Asked for only when told, such a value has no age to go by; but nobody is there who could tell of a change.
    if (namespace.refreshMs === 0) return alive ? now() + Math.max(namespace.timeoutMs, LOOK_AGAIN_MS) : now()
    if (now() < limitAtMs || !alive) return limitAtMs
    return limitAtMs + LEASE_GRACE_MS
  }

  return { judge }
}
