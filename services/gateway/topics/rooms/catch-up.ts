// Sessions behind the messages that the gateway holds of a room. A page of the history is read for each; a session that
// is behind the history itself is told of the gap.
import { isProblem } from '@keycast/protocol'
import type { Payer } from '@keycast/service'
import type { Counts } from '../../counts.ts'
import type { Subscription } from '../topics.ts'
import type { Page } from './catch-up-reads.ts'
import { MESSAGES, type Room, type RoomSubscription } from './room.ts'

export type CatchUp = ReturnType<typeof createCatchUp>

interface Deps {
  tails: { seal(room: Room): void }
  pages: { after(room: Room, seq: number, payer: Payer | undefined): Promise<Page> }
  outbox: { owe(subscription: Subscription, bits: number): void }
  counts: Pick<Counts, 'gaps'>
}

export function createCatchUp({ tails, pages, outbox, counts }: Deps) {
  /** Subscriptions whose page could not be read. */
  const failed = new Set<RoomSubscription>()

  /** Reads on for a session that has taken all that was written to it. */
  async function readOn(subscription: RoomSubscription) {
    const { topic: room, session, cursor } = subscription
    const { epoch } = room
    if (subscription.isBehind) return
    subscription.isBehind = true
    const page = await pages.after(room, cursor, session.payer)
    subscription.isBehind = false
    if (!isStreaming(subscription)) return
    if (isProblem(page)) return void failed.add(subscription)
    const hasMoved = subscription.cursor !== cursor || room.epoch !== epoch
    if (!hasMoved && cursor + 1 < page.oldest) {
      tails.seal(room)
      counts.gaps.trimmed++
      subscription.gap = 'trimmed'
      subscription.cursor = room.reached
    }
    outbox.owe(subscription, MESSAGES)
  }

  return {
    readOn,

    /** Repeats the reads that failed. A journal that is away causes no gap. */
    retry() {
      const waiting = [...failed]
      failed.clear()
      for (const subscription of waiting) if (isStreaming(subscription)) outbox.owe(subscription, MESSAGES)
    },
  }
}

/**
 * Whether messages may go out. A subscription that ended is written nothing, and one whose stream begins anew nothing before
 * its `subscribed`: the client would take them for messages after the position that is named there.
 */
function isStreaming({ index, placing }: RoomSubscription) {
  return index !== -1 && placing === undefined
}
