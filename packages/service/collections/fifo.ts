// A queue on an array, whose cost does not grow with its length: `shift` moves all that stays.

/** Taken items are let go of together, once they are this many and more than those that wait. */
const TAKEN_MAX = 1_000

/** First in, first out. */
export function createFifo<T>() {
  let items: (T | undefined)[] = []
  let head = 0

  return {
    add: (item: T) => void items.push(item),

    /** @returns the next one, which stays */
    first: () => items[head],

    /** @returns the next one, which is queued no more */
    take(): T | undefined {
      if (head === items.length) return undefined
      const item = items[head]
      items[head++] = undefined
      if (head === items.length) {
        items = []
        head = 0
      } else if (head > TAKEN_MAX && head * 2 > items.length) {
        items = items.slice(head)
        head = 0
      }
      return item
    },

    get size() {
      return items.length - head
    },
  }
}
