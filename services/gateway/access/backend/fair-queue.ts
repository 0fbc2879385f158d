// A queue whose lanes take turns: thousands of items in one lane do not keep another lane waiting. Each item is taken
// once.
import { createUniqueQueue, type UniqueQueue } from '@keycast/service'

/** An item that is added in several lanes has a place in each; it is taken when it comes up in the first of them. */
export function createFairQueue<T>() {
  /** Those with items. */
  const lanes = new Map<unknown, UniqueQueue<T>>()
  /** The one whose turn is next comes first. */
  const turns: UniqueQueue<unknown> = createUniqueQueue()
  /** In which lanes each item stands. */
  const places = new Map<T, unknown[]>()

  /** @param lane stays where it is if it stands there already */
  function add(item: T, lane: unknown) {
    const own = lanes.get(lane) ?? createUniqueQueue()
    if (own.has(item)) return
    own.add(item)
    lanes.set(lane, own)
    turns.add(lane)
    const known = places.get(item)
    if (known) known.push(lane)
    else places.set(item, [lane])
  }

  /** @returns whether it was queued */
  function remove(item: T): boolean {
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
    has: (item: T) => places.has(item),

    /** @returns the next one, which is queued no more */
    take(): T | undefined {
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

export type FairQueue<T> = ReturnType<typeof createFairQueue<T>>
