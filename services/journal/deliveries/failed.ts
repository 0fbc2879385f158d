// The answer to a link if a room, or a part of its history, cannot be served.
import { errorCodes } from '@keycast/protocol'

/** A failed read is tried again with the next beat, and beats come once a second. */
export const RETRY_MS = 1_000

/**
 * @param {string} key @param {import('@keycast/backbone').RoomErrorCode} code @param {number} [retryAfterMs]
 * @returns {import('@keycast/backbone').RoomAnswer}
 */
export const failed = (key, code, retryAfterMs) => ({
  type: 'failed',
  key,
  code,
  message: errorCodes[code],
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
})
