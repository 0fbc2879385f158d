// When each room tells who came and left: changes wait a moment for others, so that a crowd is told in few batches.

/** `batchAt`: when changes are told next; `undefined` where there are none. `toldAt`: when that was last done. */
export interface Batched {
  batchAt: number | undefined
  toldAt: number
  members: { readonly count: number }
}

/** Changes wait this long for others of the same room. */
const BATCH_MS = 100

/** Two batches of a room are this far apart per member: 1,000 members are told twice a second. */
const APART_MS_EACH = 0.5
const APART_MS_MAX = 1_000

export function createBatches<R extends Batched>(now: () => number) {
  /** Rooms with changes to tell. */
  const changed = new Set<R>()
  /** Rooms whose batch is due. */
  const due: R[] = []

  function timeOf({ members, toldAt }: R) {
    const apartMs = Math.min(APART_MS_MAX, Math.max(BATCH_MS, members.count * APART_MS_EACH))
    return Math.max(now() + BATCH_MS, toldAt + apartMs)
  }

  return {
    /** The room has changes to tell. @param at no later than then */
    schedule(room: R, at: number = timeOf(room)) {
      room.batchAt = Math.min(at, room.batchAt ?? Number.POSITIVE_INFINITY)
      changed.add(room)
    },

    /** @returns a room that is to tell its changes now */
    takeDue(): R | undefined {
      if (due.length === 0) for (const room of changed) if (now() >= (room.batchAt as number)) due.push(room)
      const room = due.pop()
      if (!room) return undefined
      changed.delete(room)
      room.batchAt = undefined
      room.toldAt = now()
      return room
    },

    forget: (room: R) => void changed.delete(room),

    get size() {
      return changed.size
    },
  }
}
