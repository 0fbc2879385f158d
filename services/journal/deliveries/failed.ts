// The answer to a link if a room, or a part of its history, cannot be served.
import type { RoomAnswer, RoomErrorCode } from '@keycast/backbone'
import { errorCodes } from '@keycast/protocol'

/** A failed read is tried again with the next beat, and beats come once a second. */
export const RETRY_MS = 1_000

export const failed = (key: string, code: RoomErrorCode, retryAfterMs?: number): RoomAnswer => ({
  type: 'failed',
  key,
  code,
  message: errorCodes[code],
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
})
