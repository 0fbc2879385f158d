// The outbox of a log in LMDB: a table that a batch writes with its messages.

import { gapBytesOf, type Outbox, type Untellable, type Untold, untoldBytesOf } from '../log.ts'
import { partOf } from '../room.ts'
import type { Commit, Write } from './commits.ts'
import { decode, encode, type State, type Tables } from './layout.ts'

/** A room's gap stands before its messages. */
const GAP = 0

const SEQ_MAX = Number.MAX_SAFE_INTEGER

interface Deps {
  outbox: Tables['outbox']
  state: Pick<State, 'counts'>
  commit: Commit
  /** Before anything is written; false if the disk is full. */
  isOwned: () => Promise<boolean>
  /** The log's clock, in milliseconds since 1970. */
  time: () => number
}

export type LmdbOutbox = ReturnType<typeof createLmdbOutbox>

export function createLmdbOutbox({ outbox, state, commit, isOwned, time }: Deps) {
  function* entriesOf(room: string, { after = GAP, upTo = SEQ_MAX - 1 }: { after?: number; upTo?: number }) {
    for (const { key, value } of outbox.getRange({ start: [room, after + 1], end: [room, upTo + 1] })) {
      yield { seq: key[1], ...decode(value) } as Untold
    }
  }

  const gapOf = (room: string): Untellable | undefined => {
    const stored = outbox.get([room, GAP])
    return stored && JSON.parse(stored.toString())
  }

  function removeEntry(room: string, message: Untold, writes: Write[]) {
    state.counts.outboxBytes -= untoldBytesOf(room, message)
    writes.push(() => outbox.remove([room, message.seq]))
  }

  function changeGap(room: string, gap: Untellable | undefined, writes: Write[]) {
    const had = outbox.get([room, GAP])
    if (had) state.counts.outboxBytes -= gapBytesOf(room)
    if (gap) {
      state.counts.outboxBytes += gapBytesOf(room)
      writes.push(() => outbox.put([room, GAP], Buffer.from(JSON.stringify(gap))))
    } else if (had) writes.push(() => outbox.remove([room, GAP]))
  }

  /** @param collect adds writes */
  async function write(collect: (writes: Write[]) => void) {
    if (!(await isOwned())) throw new Error('the disk is full')
    const writes: Write[] = []
    collect(writes)
    if (writes.length > 0 && !(await commit(writes))) throw new Error('the disk is full')
  }

  return {
    /** @param writes collects the entry */
    put(room: string, { seq, ...message }: Untold, writes: Write[]) {
      state.counts.outboxBytes += untoldBytesOf(room, message)
      writes.push(() => outbox.put([room, seq], encode(message)))
    },

    async *rooms() {
      for (let room = ''; ; ) {
        const [next] = outbox.getKeys({ start: [room, SEQ_MAX], limit: 1 })
        if (!next) return
        room = next[0]
        const [message] = entriesOf(room, {})
        yield { room, at: message?.at ?? time() }
      }
    },

    async read(room, { after, ...bounds }) {
      return { gap: gapOf(room), messages: partOf(entriesOf(room, { after }), bounds), now: time() }
    },

    take: parts =>
      write(writes => {
        for (const { room, upTo, gap } of parts) {
          for (const message of entriesOf(room, { upTo })) removeEntry(room, message, writes)
          changeGap(room, gap, writes)
        }
      }),

    remove: (room, seqs) =>
      write(writes => {
        for (const seq of seqs) {
          const stored = outbox.get([room, seq])
          if (stored) removeEntry(room, { seq, ...decode(stored) } as Untold, writes)
        }
      }),

    stats: () => ({ bytes: state.counts.outboxBytes }),
  } satisfies Outbox & { put: (room: string, message: Untold, writes: Write[]) => void }
}
