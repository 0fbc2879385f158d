// Why something that was asked for is not done: one shape for clients, gateways, fetchers and journals.
import { type ErrorCode, errorCodes } from './codes.js'

/**
 * Without `message` the code's own text says enough. With `retryAfterMs` it heals by itself, or may be asked again then;
 * counted from when it is told.
 */
export interface Problem {
  readonly code: ErrorCode
  readonly message?: string
  readonly retryAfterMs?: number
}

/** Whether what was asked for is not done. Nothing else that is answered has a code. */
export const isProblem = <T extends object>(answer: T | Problem): answer is Problem => 'code' in answer

/** The text for people. */
export const problemText = ({ code, message = errorCodes[code] }: Problem) => message
