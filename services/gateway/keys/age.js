// How old a value may be. Where the fetcher tells of changes only, a refresh that nothing was heard of has confirmed the
// value, once the link's node says that all refreshes of its time are over: docs/decisions, 16.

/**
 * @typedef {import('./entry.js').Entry} Entry
 *
 * A key's refreshes by its fetcher node: at `atMs`, and each `everyMs` after that.
 * @typedef {{ confirmations: import('@keycast/backbone').Confirmations, atMs: number, everyMs: number }} Refreshes
 */

/**
 * When the backend was asked for what is known of a key, at the latest that is certain.
 *
 * @param {Pick<Entry, 'askedAtMs' | 'refreshes'>} entry
 * @returns {number}
 */
export function askedAtOf({ askedAtMs, refreshes }) {
  if (!refreshes) return askedAtMs
  const { confirmations, atMs, everyMs } = refreshes
  if (confirmations.untilMs < atMs) return askedAtMs
  return Math.max(askedAtMs, atMs + Math.floor((confirmations.untilMs - atMs) / everyMs) * everyMs)
}

/**
 * The same at the latest that is possible: another node must not answer from memory with what was asked for in between.
 *
 * @param {Pick<Entry, 'askedAtMs' | 'refreshes'>} entry
 */
export function latestAskedAtOf({ askedAtMs, refreshes }) {
  return refreshes ? Math.max(askedAtMs, refreshes.confirmations.untilMs) : askedAtMs
}

/**
 * By what another node may go that comes to own the key: the backend is to be asked when the present node would have.
 *
 * @param {Pick<Entry, 'askedAtMs' | 'refreshes' | 'store' | 'problem' | 'maxAgeMs'>} entry
 * @param {number} nowMs
 * @returns {import('@keycast/backbone').Plan | undefined} `undefined` where it ought to be asked at once
 */
export function planOf(entry, nowMs) {
  const { refreshes, store, problem, maxAgeMs } = entry
  // What may not be stored is not relied on when the node that vouched for it is gone.
  if (!refreshes || !store || problem) return undefined
  const { confirmations, atMs, everyMs } = refreshes
  const confirmed = Math.max(0, Math.floor((confirmations.untilMs - atMs) / everyMs) + 1)
  return {
    inMs: Math.max(0, atMs + confirmed * everyMs - nowMs),
    maxAgeMs,
    askedAgoMs: Math.max(0, nowMs - askedAtOf(entry)),
  }
}

/** From now on only what is heard of the key counts. @param {Pick<Entry, 'askedAtMs' | 'refreshes'>} entry */
export function endRefreshes(entry) {
  entry.askedAtMs = askedAtOf(entry)
  entry.refreshes = undefined
}
