// Why a key has no value, or no newer one: the problems that a gateway finds itself or passes on.
import { type ErrorCode, errorCodes, errorMessage, type RequestId } from '@keycast/protocol'

/**
 * `atMs`: on the gateway's monotonic clock. With `retryAfterMs` it heals by itself. `isLocal`: the fetcher did not
 * report it, the gateway concluded it from hearing nothing.
 */
export interface Problem {
  code: ErrorCode
  message: string
  retryAfterMs: number | undefined
  atMs: number
  isLocal: boolean
}

/**
 * Why something that a client asked for is not done. Without `atMs` its `retryAfterMs` counts from when it is told.
 */
export interface Refusal {
  code: ErrorCode
  message?: string
  retryAfterMs?: number
  atMs?: number
}

/**
 * The client asks again after this time if the fetcher itself gave no answer: the backbone notices a dead node in 3 s.
 */
const FETCHER_RETRY_MS = 1_000

export function createProblem(
  code: ErrorCode,
  nowMs: number,
  {
    message = errorCodes[code],
    retryAfterMs,
    isLocal = false,
  }: { message?: string; retryAfterMs?: number; isLocal?: boolean } = {},
): Problem {
  return { code, message, retryAfterMs, atMs: nowMs, isLocal }
}

/** The time until a retry makes sense, counted from now: a late client must not wait as long as the first one. */
export function retryAfterMsOf({ retryAfterMs, atMs }: Pick<Refusal, 'retryAfterMs' | 'atMs'>, nowMs: number) {
  return retryAfterMs === undefined ? undefined : Math.max(0, Math.ceil(retryAfterMs - (nowMs - (atMs ?? nowMs))))
}

/**
 * The `error` message that a client is sent of a problem of a key.
 *
 * @param about `subscribed`: whether the session is subscribed to the key now
 */
export function problemMessage(
  refusal: Refusal,
  nowMs: number,
  { id, key, subscribed }: { id?: RequestId; key: string; subscribed: boolean },
) {
  const { code, message } = refusal
  return errorMessage(code, { id, key, subscribed, message, retryAfterMs: retryAfterMsOf(refusal, nowMs) })
}

/** The problem of a key while the fetcher is silent. */
export function silentFetcher(nodesAlive: number, nowMs: number) {
  const code = nodesAlive === 0 ? 'fetcher_unavailable' : 'fetcher_timeout'
  return createProblem(code, nowMs, { retryAfterMs: FETCHER_RETRY_MS, isLocal: true })
}
