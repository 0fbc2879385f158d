// Why something that was asked for is not done: one shape for clients, gateways, fetchers and journals.
import { type ErrorCode, errorCodes } from './codes.js'

/**
 * Without `message` the code's own text says enough. With `retryAfterMs` it heals by itself, or may be asked again then;
 * counted from when it is told. `reason`: the backend's own code, of a message that it refused.
 */
export interface Problem {
  readonly code: ErrorCode
  readonly message?: string
  readonly retryAfterMs?: number
  readonly reason?: string
}

/**
 * Somebody has to let go of something first: a client that is refused for want of room is told to come back after this time,
 * whatever is full.
 */
const CAPACITY_RETRY_MS = 5_000

/** When it may be asked for again, as clients are told; `undefined` where that would be of no use. */
export const retryAfterMsOf = ({ code, retryAfterMs }: { code: string; retryAfterMs?: number }) =>
  retryAfterMs ?? (code === 'capacity' ? CAPACITY_RETRY_MS : undefined)

/** Whether what was asked for is not done. Nothing else that is answered has a code. */
export const isProblem = <T extends object>(answer: T | Problem): answer is Problem => 'code' in answer

/** The text for people. */
export const problemText = ({ code, message = errorCodes[code] }: Problem) => message
