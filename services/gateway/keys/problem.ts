// Why a key has no value, or no newer one: the problems that a gateway finds itself or passes on.
import { errorCodes, errorMessage } from '@keycast/protocol'

/**
 * @typedef {import('@keycast/protocol').ErrorCode} ErrorCode
 *
 * `atMs`: on the gateway's monotonic clock. With `retryAfterMs` it heals by itself. `isLocal`: the fetcher did not
 * report it, the gateway concluded it from hearing nothing.
 * @typedef {{ code: ErrorCode, message: string, retryAfterMs: number | undefined, atMs: number, isLocal: boolean }}
 *   Problem
 *
 * Why something that a client asked for is not done. Without `atMs` its `retryAfterMs` counts from when it is told.
 * @typedef {{ code: ErrorCode, message?: string, retryAfterMs?: number, atMs?: number }} Refusal
 */

/**
 * The client asks again after this time if the fetcher itself gave no answer: the backbone notices a dead node in 3 s.
 */
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
 * The time until a retry makes sense, counted from now: a late client must not wait as long as the first one.
 *
 * @param {Pick<Refusal, 'retryAfterMs' | 'atMs'>} refusal
 * @param {number} nowMs
 */
export function retryAfterMsOf({ retryAfterMs, atMs }, nowMs) {
  return retryAfterMs === undefined ? undefined : Math.max(0, Math.ceil(retryAfterMs - (nowMs - (atMs ?? nowMs))))
}

/**
 * The `error` message that a client is sent of a problem of a key.
 *
 * @param {Refusal} refusal
 * @param {number} nowMs
 * @param {{ id?: import('@keycast/protocol').RequestId, key: string, subscribed: boolean }} about `subscribed`: whether the
 *   session is subscribed to the key now
 */
export function problemMessage(refusal, nowMs, { id, key, subscribed }) {
  const { code, message } = refusal
  return errorMessage(code, { id, key, subscribed, message, retryAfterMs: retryAfterMsOf(refusal, nowMs) })
}

/**
 * The problem of a key while the fetcher is silent.
 *
 * @param {number} nodesAlive
 * @param {number} nowMs
 */
export function silentFetcher(nodesAlive, nowMs) {
  const code = nodesAlive === 0 ? 'fetcher_unavailable' : 'fetcher_timeout'
  return createProblem(code, nowMs, { retryAfterMs: FETCHER_RETRY_MS, isLocal: true })
}
