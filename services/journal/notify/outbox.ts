// The log's outbox as one journal reads and empties it: rooms that are emptied at the same time share a commit.
import type { World } from '@keycast/service'
import type { Between } from '../group-commit.ts'
import type { Outbox } from '../log/log.ts'

/** Of rooms, in one commit. */
export const TAKES_MAX = 100

type Part = Parameters<Outbox['take']>[0][number]

/** Parts that are taken out together, once nothing else writes. */
interface Takes {
  parts: Part[]
  taken: Promise<void>
}

export type BatchedOutbox = ReturnType<typeof createBatchedOutbox>

export function createBatchedOutbox({
  outbox,
  between,
  wallNow,
}: { outbox: Outbox; between: Between } & Pick<World, 'wallNow'>) {
  let takes: Takes | undefined
  /** How far this clock is ahead of the log's, as of the last read: it may have jumped, and the log not have followed. */
  let aheadMs = 0

  function nextTakes(): Takes {
    const parts: Part[] = []
    const taken = between(() => {
      if (takes?.parts === parts) takes = undefined
      return outbox.take(parts)
    })
    return { parts, taken }
  }

  return {
    /** By the log's clock. */
    now: () => wallNow() - aheadMs,
    bytes: () => outbox.stats().bytes,

    async read(room: string, range: { limit: number; bytesMax: number }) {
      const part = await outbox.read(room, range)
      aheadMs = wallNow() - part.now
      return part
    },

    take(part: Part): Promise<void> {
      if (!takes || takes.parts.length === TAKES_MAX) takes = nextTakes()
      takes.parts.push(part)
      return takes.taken
    },
  }
}
