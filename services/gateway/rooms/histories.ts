// Reads parts of rooms' histories, for requests over the WebSocket and over HTTP.

/**
 * @typedef {import('@keycast/protocol').History} Asked
 * @typedef {import('@keycast/protocol').ErrorCode} ErrorCode
 * @typedef {ReturnType<typeof createHistoryReader>} Histories
 */

/** A read that takes longer is given up. The link to a hanging journal is dead before that. */
const HISTORY_MS = 5_000

/** @param {{ backbone: Pick<import('@keycast/backbone').RoomsBackbone, 'history'> }} deps */
export function createHistoryReader({ backbone }) {
  return {
    /**
     * @param {Omit<Asked, 'type' | 'id'>} asked its key is a room's
     * @returns {Promise<{ problem: { code: ErrorCode, message: string, retryAfterMs?: number }, history?: undefined }
     *   | { problem?: undefined, history: import('@keycast/backbone').History }>} never rejects
     */
    async read({ key, epoch, after, before = Number.MAX_SAFE_INTEGER, limit }) {
      const range = after === undefined ? { epoch, before, limit } : { epoch, after, limit }
      const result = await backbone.history(key, range, { deadlineMs: HISTORY_MS })
      if (result.error === undefined) return { history: result }
      const { error: code, message, retryAfterMs } = result
      return { problem: { code, message, retryAfterMs } }
    },
  }
}
