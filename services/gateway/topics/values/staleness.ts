// How old a value may be, and when the subscribers of a key are told of a problem: its last try failed, or the fetcher is
// silent. Where the fetcher reports only changes, a silent refresh also confirms the value, once the link's node says that
// all refreshes up to that time are over: docs/decisions, 16.
import type { Backbone, Confirmations, Plan } from '@keycast/backbone'
import { ANSWER_GRACE_MS, type Calendar, type NamespaceChanges, type World } from '@keycast/service'
import type { Entry } from './cache.ts'
import { type Failure, silentOwner } from './failure.ts'

/** A key's refreshes by its fetcher node: at `atMs`, and each `everyMs` after that. */
export interface Refreshes {
  confirmations: Confirmations
  atMs: number
  everyMs: number
}

type Source = Entry['namespace']['source']

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

/** After keycast.yaml changed, nodes may go by the file before for so long: they look at it by themselves. */
const TAKE_OVER_MS = 30_000

interface Deps extends Pick<World, 'now'> {
  calendar: Pick<Calendar<Entry>, 'schedule'>
  backbone: Pick<Backbone, 'nodesAlive'>
}

export function createStaleness({ calendar, backbone, now }: Deps) {
  /**
   * Keys, one for each source, that stand for all whose value with `refresh: 0` was found well because a node was alive:
   * those are looked at no more until none is.
   */
  const reliesOnNodes = new Map<Source, string>()
  /** By namespace whose times changed: the longest age of a value that was fresh, and until when that holds on. */
  const eased = new Map<string, { ageMs: number; untilMs: number }>()

  /** The longest age of a value that is fresh. A node may still go by the period that it told, or by the file before. */
  function freshMsOf({ namespace, refreshes }: Entry): number {
    const { name, refreshMs, waitMs = 0, timeoutMs } = namespace
    const ageMs = Math.max(refreshMs, refreshes?.everyMs ?? 0) + waitMs + timeoutMs
    const before = eased.size > 0 ? eased.get(name) : undefined
    if (!before) return ageMs
    if (now() < before.untilMs) return Math.max(ageMs, before.ageMs)
    eased.delete(name)
    return ageMs
  }

  /**
   * Must be called when a watched key's state changes, and when the key comes up in the calendar. It schedules the next
   * check itself.
   *
   * @returns what every subscriber is to be told now: the entry's problem, or the end of the problem that was
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
      entry.failure = silence(entry)
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
    entry.failure ??= silence(entry)
    entry.stale = true
    entry.problemFrames = undefined
    checkStale(entry)
    return 'problem'
  }

  /** An answer ends a problem. So does a beat, if a fetcher that was behind has caught up and found nothing new. */
  function checkStale(entry: Entry): 'over' | undefined {
    const { failure, refreshes } = entry
    if (!failure?.isLocal || !refreshes) return undefined
    const staleAtMs = askedAtOf(entry) + freshMsOf(entry)
    if (now() >= staleAtMs) {
      calendar.schedule(entry, now() + STALE_RECHECK_MS)
      return undefined
    }
    entry.failure = undefined
    entry.stale = false
    calendar.schedule(entry, staleAtMs)
    return 'over'
  }

  const silence = ({ namespace, wireKey }: Entry): Failure => ({
    problem: silentOwner(namespace, backbone.nodesAlive(wireKey)),
    atMs: now(),
    isLocal: true,
  })

  /** @returns the time at which it is stale, if nothing arrives before */
  function staleFrom(entry: Entry): number {
    const { namespace, wireKey, refreshes, watchedAtMs, isWatchAnswered, failure } = entry
    if (failure) return askedAtOf(entry) + freshMsOf(entry) - (namespace.waitMs ?? 0)
    const limitAtMs = askedAtOf(entry) + freshMsOf(entry)
    if (!isWatchAnswered) return watchedAtMs + namespace.timeoutMs + ANSWER_GRACE_MS
    if (namespace.refreshMs > 0 && now() < limitAtMs) return limitAtMs
    const alive = backbone.nodesAlive(wireKey) > 0
    // With `refresh: 0` a value has no age to go by; but with no node alive no refresh would reach it.
    if (namespace.refreshMs === 0) {
      if (alive) reliesOnNodes.set(namespace.source, wireKey)
      return alive ? Number.POSITIVE_INFINITY : now()
    }
    if (!alive) return limitAtMs
    return limitAtMs + LEASE_GRACE_MS + (refreshes ? CONFIRMATION_LAG_MS : 0)
  }

  /** Whether of some source no node is alive any more. Then {@link fellSilent} must be called with every entry. */
  function haveAllFallenSilent() {
    const silent = [...reliesOnNodes].filter(([, key]) => backbone.nodesAlive(key) === 0)
    for (const [source] of silent) reliesOnNodes.delete(source)
    return silent.length > 0
  }

  function fellSilent(entry: Entry) {
    const { namespace, subscriptions, value, wireKey } = entry
    if (namespace.refreshMs > 0 || subscriptions.length === 0 || !value || backbone.nodesAlive(wireKey) > 0) return
    calendar.schedule(entry, now() + Math.max(namespace.timeoutMs, RECHECK_MS)) // a node may just be restarted
  }

  return {
    check,
    haveAllFallenSilent,
    fellSilent,

    /** keycast.yaml has other times for some namespaces. */
    ease(times: NamespaceChanges['times']) {
      for (const [name, { beforeMs }] of times) eased.set(name, { ageMs: beforeMs, untilMs: now() + TAKE_OVER_MS })
    },
  }
}

/** The latest time at which the backend was certainly asked for the key's content. */
export function askedAtOf({ askedAtMs, refreshes }: Pick<Entry, 'askedAtMs' | 'refreshes'>): number {
  if (!refreshes) return askedAtMs
  const { confirmations, atMs, everyMs } = refreshes
  if (confirmations.untilMs < atMs) return askedAtMs
  return Math.max(askedAtMs, atMs + Math.floor((confirmations.untilMs - atMs) / everyMs) * everyMs)
}

/**
 * The latest time at which the backend may have been asked. Another node must not answer from memory with older
 * content.
 */
export function latestAskedAtOf({ askedAtMs, refreshes }: Pick<Entry, 'askedAtMs' | 'refreshes'>) {
  return refreshes ? Math.max(askedAtMs, refreshes.confirmations.untilMs) : askedAtMs
}

/**
 * The plan for a node that takes over the key: it asks the backend when the present node would have.
 *
 * @returns `undefined` if the new node should ask at once
 */
export function planOf(
  entry: Pick<Entry, 'askedAtMs' | 'refreshes' | 'store' | 'failure' | 'maxAgeMs'>,
  nowMs: number,
): Plan | undefined {
  const { refreshes, store, failure, maxAgeMs } = entry
  // A value that may not be stored is not relied on once the node that vouched for it is gone.
  if (!refreshes || !store || failure) return undefined
  const { confirmations, atMs, everyMs } = refreshes
  const confirmed = Math.max(0, Math.floor((confirmations.untilMs - atMs) / everyMs) + 1)
  return {
    inMs: Math.max(0, atMs + confirmed * everyMs - nowMs),
    maxAgeMs,
    askedAgoMs: Math.max(0, nowMs - askedAtOf(entry)),
  }
}

/**
 * A node is asked for the key: before its answer nothing more confirms it. It may be another node than before. And
 * before it answers a get it tells of nothing else, such as that a refresh takes long.
 */
export function leaveNode({ refreshes }: Pick<Entry, 'refreshes'>) {
  if (refreshes) refreshes.confirmations = { ...refreshes.confirmations }
}

/** Stops relying on silent refreshes: from now on only answers about the key count. */
export function endRefreshes(entry: Pick<Entry, 'askedAtMs' | 'refreshes'>) {
  entry.askedAtMs = askedAtOf(entry)
  entry.refreshes = undefined
}
