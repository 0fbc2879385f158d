// Reads parts of a room's history for sessions that are behind what the gateway holds. Those that are about as far behind
// share one read: of thousands that come back at once the journal is asked once a room.
import type { Message, RoomsBackbone } from '@keycast/backbone'
import { isProblem, type Problem } from '@keycast/protocol'
import type { Payer } from '@keycast/service'
import type { Counts } from '../../counts.ts'
import type { Room } from './room.ts'

/**
 * The result of a read. Its messages are in the room's pages, unless `oldest` and `newest` say that there are none.
 * `first`: the seq of the first of them; `undefined` where there is none.
 */
interface Found {
  epoch: string
  oldest: number
  newest: number
  first: number | undefined
}

export type Page = Found | Problem

export type CatchUpReads = ReturnType<typeof createCatchUpReads>

type Range = { after: number; limit: number } | { before: number; limit: number }

/** Messages of one read. */
const PAGE_MESSAGES = 500

/** A subscription that is at most so many messages further joins a read under way: the read reaches far beyond it. */
const JOIN_MESSAGES = 250

/** A read that takes longer is given up. The link to a hanging journal is dead before that. */
const READ_MS = 5_000

interface Deps {
  backbone: Pick<RoomsBackbone, 'history'>
  tails: { addPage(room: Room, messages: Message[]): void }
  counts: Pick<Counts, 'pageReads' | 'pageReadsCoalesced'>
}

export function createCatchUpReads({ backbone, tails, counts }: Deps) {
  async function read(room: Room, range: Range, payer: Payer | undefined): Promise<Page> {
    counts.pageReads++
    const { deletions } = room
    const result = await backbone.history(room.key, { epoch: room.epoch, ...range }, { deadlineMs: READ_MS, payer })
    if (isProblem(result)) return result
    const { epoch, oldest, newest, messages } = result
    if (room.deletions !== deletions) return read(room, range, payer)
    if (epoch === room.epoch) {
      room.oldest = Math.max(room.oldest, oldest)
      // By now it may be of no use to anybody.
      if (room.subscriptions.length > 0) tails.addPage(room, messages)
    }
    return { epoch, oldest, newest, first: messages[0]?.seq }
  }

  return {
    /**
     * Has the messages after a seq read into the room's pages, some at least.
     *
     * @param room its epoch is known
     * @param payer in whose turn it is read, if nobody reads it yet
     * @returns never rejects
     */
    after(room: Room, after: number, payer: Payer | undefined): Promise<Page> {
      for (const [from, { epoch, reading }] of room.reads) {
        if (epoch !== room.epoch || from > after || after - from > JOIN_MESSAGES) continue
        // The read may have begun before that message was there, and would not find where it stands.
        if (after > room.reached) continue
        counts.pageReadsCoalesced++
        return reading
      }
      const reading = read(room, { after, limit: PAGE_MESSAGES }, payer).finally(() => {
        if (room.reads.get(after)?.reading === reading) room.reads.delete(after)
      })
      room.reads.set(after, { epoch: room.epoch, reading })
      return reading
    },

    /**
     * Has the last messages up to a seq read into the room's pages.
     *
     * @param room its epoch is known
     * @param payer in whose turn they are read
     */
    before: (room: Room, end: number, count: number, payer: Payer | undefined) =>
      read(room, { before: end + 1, limit: count }, payer),
  }
}
