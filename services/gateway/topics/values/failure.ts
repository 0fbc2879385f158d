// Why a key has no value, or no newer one: what the gateway was told of the last try, or concluded itself.
import type { Problem } from '@keycast/protocol'
import type { ValueNamespace } from '@keycast/service'

/** `atMs`: on the gateway's monotonic clock. `isLocal`: no fetcher reported it, the gateway concluded it from silence. */
export interface Failure {
  readonly problem: Problem
  readonly atMs: number
  readonly isLocal: boolean
}

/**
 * The client asks again after this time if the fetcher itself gave no answer: the backbone notices a dead node in 3 s.
 */
const FETCHER_RETRY_MS = 1_000

/** The problem as it is told now: a client that comes late must not wait as long as the first one. */
export function problemNow({ problem, atMs }: Pick<Failure, 'problem' | 'atMs'>, nowMs: number): Problem {
  const { retryAfterMs } = problem
  if (retryAfterMs === undefined) return problem
  return { ...problem, retryAfterMs: Math.max(0, Math.ceil(retryAfterMs - (nowMs - atMs))) }
}

/** The problem of a key while whoever has it is silent: a fetcher, or the journal. */
export const silentOwner = ({ source }: Pick<ValueNamespace, 'source'>, nodesAlive: number): Problem =>
  source === 'pushed'
    ? { code: 'journal_unavailable', message: 'the journal cannot be reached', retryAfterMs: FETCHER_RETRY_MS }
    : silentFetcher(nodesAlive)

/** The problem of a key while the fetcher is silent. */
export function silentFetcher(nodesAlive: number): Problem {
  return { code: nodesAlive === 0 ? 'fetcher_unavailable' : 'fetcher_timeout', retryAfterMs: FETCHER_RETRY_MS }
}
