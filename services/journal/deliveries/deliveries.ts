// Decides what each link is sent: messages of the rooms that it watches, and the histories that it asked for.
import type { Payer } from '@keycast/service'

import type { Log } from '../log/log.ts'
import type { WatchedRooms } from '../watched-rooms.ts'
import { createHistories } from './histories.ts'
import { createReadSlots, type ReadSlots } from './read-slots.ts'
import { createWatches } from './watches.ts'

interface Link {
  watches: ReturnType<typeof createWatches>
  histories: ReturnType<typeof createHistories>
  slots: ReadSlots
}

const NOTHING = Object.freeze({ answers: [], more: false })

interface Deps {
  log: { head: Log['head']; read: Log['read'] }
  rooms: WatchedRooms
  isRoom: (key: string) => boolean
  tell: (link: string, key: string) => void
  counts: Parameters<typeof createWatches>[0]['counts']
  onReadFailed: (error: Error) => void
}

export function createDeliveries({ log, rooms, isRoom, tell, counts, onReadFailed }: Deps) {
  const links = new Map<string, Link>()

  function linkOf(id: string) {
    const link = links.get(id) ?? open(id)
    links.set(id, link)
    return link
  }

  function open(link: string): Link {
    const slots = createReadSlots(key => tell(link, key))
    const shared = { link, slots, log, isRoom, tell, counts, onReadFailed }
    return { slots, watches: createWatches({ ...shared, rooms }), histories: createHistories(shared) }
  }

  /** The log could not say which messages it kept: every watched room's head is read anew. */
  async function onUncertain() {
    for (const key of new Set([...links.values()].flatMap(({ watches }) => [...watches.keys()]))) {
      try {
        rooms.raise(key, await log.head(key))
      } catch (error) {
        onReadFailed(error as Error)
      }
    }
    for (const [id, { watches }] of links) for (const key of watches.keys()) tell(id, key)
  }

  return {
    onWatch: (id: string, want: Parameters<Link['watches']['watch']>[0]) => linkOf(id).watches.watch(want),
    onUnwatch: (id: string, key: string) => links.get(id)?.watches.unwatch(key),
    onGet: (id: string, want: { key: string; payer?: Payer }) => linkOf(id).histories.get(want),
    onCancelGet: (id: string, key: string) => links.get(id)?.histories.cancel(key),

    onLinkLost(id: string) {
      links.get(id)?.watches.close()
      links.delete(id)
    },

    /** Drops copies of a room's messages: some of them were deleted. */
    forget(room: string) {
      rooms.forget(room)
      for (const { watches, histories } of links.values()) {
        watches.forget(room)
        histories.forget(room)
      }
    },

    onUncertain,
    onReadFailed,

    answersFor(id: string, key: string, bytesLeft: number) {
      const link = links.get(id)
      if (!link) return NOTHING
      const parts = link.histories.answersFor(key)
      return parts ? { answers: parts, more: false } : link.watches.answersFor(key, bytesLeft)
    },

    headsFor: (id: string) => links.get(id)?.watches.headsForBeat(),

    /** The links that watch a room, for an operator. */
    linksOf: (key: string) => [...links.values()].flatMap(({ watches }) => watches.describe(key) ?? []),

    stats() {
      let readsUnderWay = 0
      for (const { slots } of links.values()) readsUnderWay += slots.taken()
      return { readsUnderWay }
    },
  }
}
