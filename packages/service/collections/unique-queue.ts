// A queue that holds each item once, and whose cost does not grow with the number of items taken before.
import { createRecent } from './recent.ts'

/** First in, first out. An item that was deleted and added again stands at the end. */
export function createUniqueQueue<T>(items: Iterable<T> = []) {
  const queued = createRecent<T, undefined>()

  /** @param item stays where it is if it is queued already */
  function add(item: T) {
    if (!queued.has(item)) queued.set(item, undefined)
  }

  for (const item of items) add(item)

  return {
    add,
    /** @returns whether it was queued */
    delete: queued.delete,
    has: queued.has,
    /** @returns the next one, which stays */
    first: (): T | undefined => queued.oldest()?.key,
    /** @returns the next one, which is queued no more */
    take: (): T | undefined => queued.takeOldest()?.key,
    get size() {
      return queued.size
    },
  }
}

export type UniqueQueue<T> = ReturnType<typeof createUniqueQueue<T>>
