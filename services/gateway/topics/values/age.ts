// How old a value may be. Where the fetcher reports only changes, a silent refresh also confirms the value, once the
// link's node says that all refreshes up to that time are over: docs/decisions, 16.
import type { Confirmations, Plan } from '@keycast/backbone'
import type { Entry } from './entry.ts'

/** A key's refreshes by its fetcher node: at `atMs`, and each `everyMs` after that. */
export interface Refreshes {
  confirmations: Confirmations
  atMs: number
  everyMs: number
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

/** Stops relying on silent refreshes: from now on only answers about the key count. */
export function endRefreshes(entry: Pick<Entry, 'askedAtMs' | 'refreshes'>) {
  entry.askedAtMs = askedAtOf(entry)
  entry.refreshes = undefined
}
