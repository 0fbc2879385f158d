// Decides when the subscribers of a key are due word of a problem: its last try failed, or the fetcher is silent.
import type { Backbone } from '@keycast/backbone'
import { ANSWER_GRACE_MS, type Calendar } from '@keycast/service'
import { askedAtOf } from './age.ts'
import type { Entry } from './entry.ts'
import { type Failure, silentFetcher } from './failure.ts'

export type Staleness = ReturnType<typeof createStaleness>

/**
 * A fetcher's silence counts this much later than its own report would. The fetcher gives a worker's lease as long over
 * the timeout before it reports a failure.
 */
const LEASE_GRACE_MS = 1_000

/**
 * A value that only beats confirm seems older than it is by up to this much: a beat covers the refreshes up to the mark
 * before it.
 */
const CONFIRMATION_LAG_MS = 3_000

/** A key of which nothing is known is checked again this often: the code of its problem may change. */
const RECHECK_MS = 1_000

/** A stale value is checked again this often: a beat may have confirmed it. There may be a million such values. */
const STALE_RECHECK_MS = 5_000

interface Deps {
  calendar: Pick<Calendar<Entry>, 'schedule'>
  backbone: Pick<Backbone, 'nodesAlive'>
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createStaleness({ calendar, backbone, now }: Deps) {
  /**
   * Must be called when a watched key's state changes, and when the key comes up in the calendar. It schedules the next
   * check itself.
   *
   * @returns the word that every subscriber is due now: the entry's problem, or the end of the problem that was
   *   announced
   */
  function check(entry: Entry): 'problem' | 'over' | undefined {
    if (entry.subscriptions.length === 0) return undefined
    return entry.value ? checkValue(entry) : checkMissing(entry)
  }

  /** There is no value: the first failed try is reported, and after it each change of the code. */
  function checkMissing(entry: Entry): 'problem' | undefined {
    if (!entry.failure || entry.failure.isLocal) {
      const reportAtMs = entry.watchedAtMs + entry.namespace.timeoutMs + ANSWER_GRACE_MS
      if (!entry.failure && now() < reportAtMs) {
        calendar.schedule(entry, reportAtMs)
        return undefined
      }
      entry.failure = silence()
      calendar.schedule(entry, now() + RECHECK_MS)
    }
    const { code } = entry.failure.problem
    if (entry.announcedCode === code) return undefined
    entry.announcedCode = code
    entry.problemFrames = undefined
    return 'problem'
  }

  /** A key with a value is stale when the value is older than it can get while fetches succeed. Reported once. */
  function checkValue(entry: Entry): 'problem' | 'over' | undefined {
    if (entry.stale) return checkStale(entry)
    const staleAtMs = staleFrom(entry)
    if (now() < staleAtMs) {
      calendar.schedule(entry, staleAtMs)
      return undefined
    }
    entry.failure ??= silence()
    entry.stale = true
    entry.problemFrames = undefined
    checkStale(entry)
    return 'problem'
  }

  /** An answer ends a problem. So does a beat, if a fetcher that was behind has caught up and found nothing new. */
  function checkStale(entry: Entry): 'over' | undefined {
    const { failure, refreshes, namespace } = entry
    if (!failure?.isLocal || !refreshes) return undefined
    const staleAtMs = askedAtOf(entry) + namespace.refreshMs + namespace.timeoutMs
    if (now() >= staleAtMs) {
      calendar.schedule(entry, now() + STALE_RECHECK_MS)
      return undefined
    }
    entry.failure = undefined
    entry.stale = false
    calendar.schedule(entry, staleAtMs)
    return 'over'
  }

  const silence = (): Failure => ({ problem: silentFetcher(backbone.nodesAlive()), atMs: now(), isLocal: true })

  /** @returns the time at which it is stale, if nothing arrives before */
  function staleFrom(entry: Entry): number {
    const { namespace, refreshes, watchedAtMs, isWatchAnswered, failure } = entry
    const limitAtMs = askedAtOf(entry) + namespace.refreshMs + namespace.timeoutMs
    if (failure) return limitAtMs
    if (!isWatchAnswered) return watchedAtMs + namespace.timeoutMs + ANSWER_GRACE_MS
    const alive = backbone.nodesAlive() > 0
    // With `refresh: 0` a value has no age to go by; but with no node alive no refresh would reach it.
    if (namespace.refreshMs === 0) return alive ? now() + Math.max(namespace.timeoutMs, RECHECK_MS) : now()
    if (now() < limitAtMs || !alive) return limitAtMs
    return limitAtMs + LEASE_GRACE_MS + (refreshes ? CONFIRMATION_LAG_MS : 0)
  }

  return { check }
}
