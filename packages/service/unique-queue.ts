// A queue that holds each item once, and whose cost does not grow with the number of items taken before. A Set alone is
// no queue: V8's iterators walk over all deleted items, so taking the first of 400,000 one by one takes half a minute.

/**
 * An item's place in a ring whose other places are its neighbours in the queue.
 *
 * @template T
 * @typedef {{ item: T | undefined, before: Place<T>, after: Place<T> }} Place
 */

/**
 * First in, first out. An item that was deleted and added again stands at the end.
 *
 * @template T
 * @param {Iterable<T>} [items]
 */
export function createUniqueQueue(items = []) {
  /** @type {Map<T, Place<T>>} */
  const places = new Map()
  /** Between the last item and the first. */
  const end = /** @type {Place<T>} */ ({ item: undefined })
  end.before = end.after = end

  /** @param {T} item stays where it is if it is queued already */
  function add(item) {
    if (places.has(item)) return
    const place = { item, before: end.before, after: end }
    place.before.after = place
    end.before = place
    places.set(item, place)
  }

  /** @param {T} item @returns {boolean} whether it was queued */
  function remove(item) {
    const place = places.get(item)
    if (!place) return false
    places.delete(item)
    place.before.after = place.after
    place.after.before = place.before
    return true
  }

  /** @returns {T | undefined} the next one, which is queued no more */
  function take() {
    const { item } = end.after
    if (item !== undefined) remove(item)
    return item
  }

  for (const item of items) add(item)

  return {
    add,
    delete: remove,
    /** @param {T} item */
    has: item => places.has(item),
    /** @returns {T | undefined} the next one, which stays */
    first: () => end.after.item,
    take,
    get size() {
      return places.size
    },
  }
}

/**
 * @template T
 * @typedef {ReturnType<typeof createUniqueQueue<T>>} UniqueQueue
 */
