// What a gateway is told where something cannot be done, and when it is to ask again.
import type { RoomAnswer, RoomErrorCode } from '@keycast/backbone'
import { type ErrorCode, errorCodes, type Problem } from '@keycast/protocol'

/** A failed read is tried again with the next beat, and beats come once a second. */
const RETRY_MS = 1_000

/** A command that is refused so may be taken later. */
const passing = new Set<ErrorCode>(['journal_unavailable', 'publish_unknown', 'log_full', 'capacity', 'rate_limited'])

/** The result of a command that was not done. */
export const refused = (problem: Problem): Problem =>
  passing.has(problem.code) ? { ...problem, retryAfterMs: RETRY_MS } : problem

/** The answer to a link if a key cannot be served. Only a log that cannot be read is asked again. */
export const failed = (key: string, code: RoomErrorCode, message: string = errorCodes[code]): RoomAnswer => ({
  type: 'failed',
  key,
  code,
  message,
  ...(code === 'journal_unavailable' && { retryAfterMs: RETRY_MS }),
})
