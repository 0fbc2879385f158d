// Reads parts of rooms' histories, for requests over the WebSocket and over HTTP.
import type { History, RoomsBackbone } from '@keycast/backbone'
import type { History as Asked, Problem } from '@keycast/protocol'
import type { Payer } from '@keycast/service'

export type Histories = ReturnType<typeof createHistoryReader>

/** A read that takes longer is given up. The link to a hanging journal is dead before that. */
const HISTORY_MS = 5_000

export function createHistoryReader({ backbone }: { backbone: Pick<RoomsBackbone, 'history'> }) {
  return {
    /**
     * @param asked its key is a room's
     * @param payer who asks
     * @returns never rejects
     */
    read(
      { key, epoch, after, before = Number.MAX_SAFE_INTEGER, limit }: Omit<Asked, 'type' | 'id'>,
      payer: Payer | undefined,
    ): Promise<History | Problem> {
      const range = after === undefined ? { epoch, before, limit } : { epoch, after, limit }
      return backbone.history(key, range, { deadlineMs: HISTORY_MS, payer })
    },
  }
}
