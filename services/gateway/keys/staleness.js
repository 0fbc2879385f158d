// Decides when the subscribers of a key are due word of a problem: its last try failed, or the fetcher is silent.
import { askedAtOf } from './age.js'
import { silentFetcher } from './problem.js'
import { ANSWER_GRACE_MS } from './single-flight.js'

/**
 * @typedef {import('./entry.js').Entry} Entry
 * @typedef {ReturnType<typeof createStaleness>} Staleness
 */

/**
 * How much later the silence of a fetcher that is alive counts than its own report would: it gives a worker's lease as
 * long over the timeout before it reports a failure.
 */
const LEASE_GRACE_MS = 1_000

/** How much older than it is a value seems whose refreshes are heard of only by beats, and by the mark before each. */
const CONFIRMATION_LAG_MS = 3_000

/** How often a key that nothing is known of is checked again: the code of its problem may change. */
const RECHECK_MS = 1_000

/** How often a stale value is, of which beats may confirm that it is not any more. There may be a million of them. */
const STALE_RECHECK_MS = 5_000

/**
 * @param {object} deps
 * @param {Pick<import('./calendar.js').Calendar<Entry>, 'schedule'>} deps.calendar
 * @param {Pick<import('@keycast/backbone').Backbone, 'nodesAlive'>} deps.backbone
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createStaleness({ calendar, backbone, now }) {
  /**
   * To be called when a watched key's state changed and when it comes up in the calendar; schedules the next time itself.
   *
   * @param {Entry} entry
   * @returns {'problem' | 'over' | undefined} what every subscriber is due word of now: the entry's `problem`, or that the
   *   one it was told of is over
   */
  function check(entry) {
    if (entry.subscriptions.length === 0) return undefined
    return entry.value ? checkValue(entry) : checkMissing(entry)
  }

  /**
   * There is no value: the first failed try is reported, and after it each change of the code.
   *
   * @param {Entry} entry
   * @returns {'problem' | undefined}
   */
  function checkMissing(entry) {
    if (!entry.problem || entry.problem.isLocal) {
      const reportAtMs = entry.watchedAtMs + entry.namespace.timeoutMs + ANSWER_GRACE_MS
      if (!entry.problem && now() < reportAtMs) {
        calendar.schedule(entry, reportAtMs)
        return undefined
      }
      entry.problem = silentFetcher(backbone.nodesAlive(), now())
      calendar.schedule(entry, now() + RECHECK_MS)
    }
    if (entry.announcedCode === entry.problem.code) return undefined
    entry.announcedCode = entry.problem.code
    entry.problemFrames = undefined
    return 'problem'
  }

  /**
   * There is a value: it is stale when it is older than it may get while the fetcher's tries succeed. Reported once.
   *
   * @param {Entry} entry
   * @returns {'problem' | 'over' | undefined}
   */
  function checkValue(entry) {
    if (entry.stale) return checkStale(entry)
    const staleAtMs = staleFrom(entry)
    if (now() < staleAtMs) {
      calendar.schedule(entry, staleAtMs)
      return undefined
    }
    entry.problem ??= silentFetcher(backbone.nodesAlive(), now())
    entry.stale = true
    entry.problemFrames = undefined
    checkStale(entry)
    return 'problem'
  }

  /**
   * An answer ends what is wrong, or a beat where a fetcher that was behind has nothing new to say.
   *
   * @param {Entry} entry
   * @returns {'over' | undefined}
   */
  function checkStale(entry) {
    const { problem, refreshes, namespace } = entry
    if (!problem?.isLocal || !refreshes) return undefined
    const staleAtMs = askedAtOf(entry) + namespace.refreshMs + namespace.timeoutMs
    if (now() >= staleAtMs) {
      calendar.schedule(entry, now() + STALE_RECHECK_MS)
      return undefined
    }
    entry.problem = undefined
    entry.stale = false
    calendar.schedule(entry, staleAtMs)
    return 'over'
  }

  /** @param {Entry} entry @returns {number} the time to check again, or when it is stale if nothing comes before */
  function staleFrom(entry) {
    const { namespace, refreshes, watchedAtMs, isWatchAnswered, problem } = entry
    const limitAtMs = askedAtOf(entry) + namespace.refreshMs + namespace.timeoutMs
    if (problem) return limitAtMs
    if (!isWatchAnswered) return watchedAtMs + namespace.timeoutMs + ANSWER_GRACE_MS
    const alive = backbone.nodesAlive() > 0
    // Asked for only on a refresh, such a value has no age to go by; but with no node alive no refresh would reach it.
    if (namespace.refreshMs === 0) return alive ? now() + Math.max(namespace.timeoutMs, RECHECK_MS) : now()
    if (now() < limitAtMs || !alive) return limitAtMs
    return limitAtMs + LEASE_GRACE_MS + (refreshes ? CONFIRMATION_LAG_MS : 0)
  }

  return { check }
}
