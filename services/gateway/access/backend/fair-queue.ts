// A queue whose lanes take turns: thousands of items in one lane do not keep another lane waiting. Each item is taken
// once.
import { createUniqueQueue } from '@keycast/service'

/**
 * An item that is added in several lanes has a place in each; it is taken when it comes up in the first of them.
 *
 * @template T
 */
export function createFairQueue() {
  /** Those with items. @type {Map<unknown, import('@keycast/service').UniqueQueue<T>>} */
  const lanes = new Map()
  /** The one whose turn is next comes first. @type {import('@keycast/service').UniqueQueue<unknown>} */
  const turns = createUniqueQueue()
  /** In which lanes each item stands. @type {Map<T, unknown[]>} */
  const places = new Map()

  /** @param {T} item @param {unknown} lane stays where it is if it stands there already */
  function add(item, lane) {
    const own = lanes.get(lane) ?? createUniqueQueue()
    if (own.has(item)) return
    own.add(item)
    lanes.set(lane, own)
    turns.add(lane)
    const known = places.get(item)
    if (known) known.push(lane)
    else places.set(item, [lane])
  }

  /** @param {T} item @returns {boolean} whether it was queued */
  function remove(item) {
    const known = places.get(item)
    if (!known) return false
    places.delete(item)
    for (const lane of known) {
      const own = lanes.get(lane)
      own?.delete(item)
      if (own?.size !== 0) continue
      lanes.delete(lane)
      turns.delete(lane)
    }
    return true
  }

  return {
    add,
    delete: remove,
    /** @param {T} item */
    has: item => places.has(item),

    /** @returns {T | undefined} the next one, which is queued no more */
    take() {
      const lane = turns.first()
      const item = lanes.get(lane)?.first()
      if (item === undefined) return undefined
      remove(item)
      // Its turn is over.
      if (turns.delete(lane)) turns.add(lane)
      return item
    },

    get size() {
      return places.size
    },
  }
}

/**
 * @template T
 * @typedef {ReturnType<typeof createFairQueue<T>>} FairQueue
 */
