// Decides what each link is sent: messages of the rooms that it watches, and the histories that it asked for.
import { createHistories } from './histories.ts'
import { createReadSlots } from './read-slots.ts'
import { createWatches } from './watches.ts'

/**
 * @typedef {object} Link
 * @property {ReturnType<typeof createWatches>} watches
 * @property {ReturnType<typeof createHistories>} histories
 * @property {import('./read-slots.ts').ReadSlots} slots
 */

const NOTHING = Object.freeze({ answers: [], more: false })

/**
 * @param {object} deps
 * @param {Pick<import('../log/log.ts').Log, 'head' | 'read'>} deps.log
 * @param {ReturnType<typeof import('../watched-rooms.ts').createWatchedRooms>} deps.rooms
 * @param {(key: string) => boolean} deps.isRoom
 * @param {(link: string, key: string) => void} deps.tell
 * @param {Parameters<typeof createWatches>[0]['counts']} deps.counts
 * @param {(error: Error) => void} deps.onReadFailed
 */
export function createDeliveries({ log, rooms, isRoom, tell, counts, onReadFailed }) {
  /** @type {Map<string, Link>} */
  const links = new Map()

  /** @param {string} id */
  function linkOf(id) {
    const link = links.get(id) ?? open(id)
    links.set(id, link)
    return link
  }

  /** @param {string} link @returns {Link} */
  function open(link) {
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
        onReadFailed(/** @type {Error} */ (error))
      }
    }
    for (const [id, { watches }] of links) for (const key of watches.keys()) tell(id, key)
  }

  return {
    /** @param {string} id @param {Parameters<Link['watches']['watch']>[0]} want */
    onWatch: (id, want) => linkOf(id).watches.watch(want),
    /** @param {string} id @param {string} key */
    onUnwatch: (id, key) => links.get(id)?.watches.unwatch(key),
    /** @param {string} id @param {{ key: string }} want */
    onGet: (id, { key }) => linkOf(id).histories.get(key),
    /** @param {string} id @param {string} key */
    onCancelGet: (id, key) => links.get(id)?.histories.cancel(key),

    /** @param {string} id */
    onLinkLost(id) {
      links.get(id)?.watches.close()
      links.delete(id)
    },

    onUncertain,

    /** @param {string} id @param {string} key @param {number} bytesLeft */
    answersFor(id, key, bytesLeft) {
      const link = links.get(id)
      if (!link) return NOTHING
      const parts = link.histories.answersFor(key)
      return parts ? { answers: parts, more: false } : link.watches.answersFor(key, bytesLeft)
    },

    /** @param {string} id */
    headsFor: id => links.get(id)?.watches.headsForBeat(),

    /** The links that watch a room, for an operator. @param {string} key */
    linksOf: key => [...links.values()].flatMap(({ watches }) => watches.describe(key) ?? []),

    stats() {
      let watches = 0
      let readsUnderWay = 0
      for (const link of links.values()) {
        watches += link.watches.count()
        readsUnderWay += link.slots.taken()
      }
      return { links: links.size, watches, readsUnderWay }
    },
  }
}
