// What a link is told where a room or a part of a history cannot be given.
import { errorCodes } from '@keycast/protocol'

/** Beats come once a second, and with them what failed is tried again. */
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
