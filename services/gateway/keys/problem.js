// Why a key has no value, or no newer one: the words for it that a gateway makes up itself or passes on.
import { errorCodes } from '@keycast/protocol'

/**
 * @typedef {import('@keycast/protocol').ErrorCode} ErrorCode
 *
 * `atMs`: on the gateway's monotonic clock. With `retryAfterMs` it heals by itself. `isLocal`: the fetcher did not
 * report it, the gateway concluded it from hearing nothing.
 * @typedef {{ code: ErrorCode, message: string, retryAfterMs: number | undefined, atMs: number, isLocal: boolean }}
 *   Problem
 */

/** When to ask again after the fetcher itself gave no answer: the backbone notices a dead node in 3 s. */
const FETCHER_RETRY_MS = 1_000

/**
 * @param {ErrorCode} code
 * @param {number} nowMs
 * @param {{ message?: string, retryAfterMs?: number, isLocal?: boolean }} [rest]
 * @returns {Problem}
 */
export function createProblem(code, nowMs, { message = errorCodes[code], retryAfterMs, isLocal = false } = {}) {
  return { code, message, retryAfterMs, atMs: nowMs, isLocal }
}

/**
 * When trying again makes sense, counted from now: a client that comes late is not to wait as long as the first.
 *
 * @param {Problem} problem
 * @param {number} nowMs
 */
export function retryAfterMsOf({ retryAfterMs, atMs }, nowMs) {
  return retryAfterMs === undefined ? undefined : Math.max(0, Math.ceil(retryAfterMs - (nowMs - atMs)))
}

/**
 * The problem of a key now that the fetcher is not heard.
 *
 * @param {number} nodesAlive
 * @param {number} nowMs
 */
export function silentFetcher(nodesAlive, nowMs) {
  const code = nodesAlive === 0 ? 'fetcher_unavailable' : 'fetcher_timeout'
  return createProblem(code, nowMs, { retryAfterMs: FETCHER_RETRY_MS, isLocal: true })
}
