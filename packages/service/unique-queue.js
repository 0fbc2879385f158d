// A queue that holds each item once, and whose cost does not grow with what was taken before. A Set alone is no queue:
// V8's iterators walk over all that was deleted, so taking the first of 400,000 one by one takes half a minute.

/** Slots that may be empty before they are given back: fewer are not worth a copy. */
const EMPTY_SLOTS_MIN = 1_024

/**
 * First in, first out. An item that was deleted and added again may keep its old place.
 *
 * @template T
 * @param {Iterable<T>} [items]
 */
export function createUniqueQueue(items = []) {
  const members = new Set(items)
  /**
   * The order; an item that is no member (any more) is passed over. Those before `head` were taken.
   *
   * @type {(T | undefined)[]}
   */
  let slots = [...members]
  let head = 0

  /** Passes over what was deleted. */
  function skipDeleted() {
    while (head < slots.length && !members.has(/** @type {T} */ (slots[head]))) slots[head++] = undefined
  }

  /** Gives back the slots of what was taken, at a copy for each doubling and not for each item. */
  function trim() {
    if (members.size === 0) slots = []
    else if (head >= EMPTY_SLOTS_MIN && head * 2 >= slots.length) slots = slots.slice(head)
    else return
    head = 0
  }

  return {
    /** @param {T} item stays where it is if it is queued already */
    add(item) {
      if (members.has(item)) return
      members.add(item)
      // Without it, an item that is added and deleted for ever would take a slot each time.
      if (slots.length - head > 2 * members.size + EMPTY_SLOTS_MIN) {
        slots = [...members]
        head = 0
      } else slots.push(item)
    },
    /** @param {T} item @returns {boolean} whether it was queued */
    delete(item) {
      const wasQueued = members.delete(item)
      if (members.size === 0) trim()
      return wasQueued
    },
    /** @param {T} item */
    has: item => members.has(item),
    /** @returns {T | undefined} the next one, which stays */
    first() {
      skipDeleted()
      return slots[head]
    },
    /** @returns {T | undefined} the next one, which is queued no more */
    take() {
      skipDeleted()
      if (head === slots.length) return undefined
      const item = /** @type {T} */ (slots[head])
      slots[head++] = undefined
      members.delete(item)
      trim()
      return item
    },
    get size() {
      return members.size
    },
  }
}

/**
 * @template T
 * @typedef {ReturnType<typeof createUniqueQueue<T>>} UniqueQueue
 */
