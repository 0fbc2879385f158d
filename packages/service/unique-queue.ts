// A queue that holds each item once, and whose cost does not grow with the number of items taken before. A Set alone is
// no queue: V8's iterators walk over all deleted items, so taking the first of 400,000 one by one takes half a minute.

/** An item's place in a ring whose other places are its neighbours in the queue. */
interface Place<T> {
  item: T | undefined
  before: Place<T>
  after: Place<T>
}

/** First in, first out. An item that was deleted and added again stands at the end. */
export function createUniqueQueue<T>(items: Iterable<T> = []) {
  const places = new Map<T, Place<T>>()
  /** Between the last item and the first. */
  const end = { item: undefined } as Place<T>
  end.before = end.after = end

  /** @param item stays where it is if it is queued already */
  function add(item: T) {
    if (places.has(item)) return
    const place = { item, before: end.before, after: end }
    place.before.after = place
    end.before = place
    places.set(item, place)
  }

  /** @returns whether it was queued */
  function remove(item: T): boolean {
    const place = places.get(item)
    if (!place) return false
    places.delete(item)
    place.before.after = place.after
    place.after.before = place.before
    return true
  }

  /** @returns the next one, which is queued no more */
  function take(): T | undefined {
    const { item } = end.after
    if (item !== undefined) remove(item)
    return item
  }

  for (const item of items) add(item)

  return {
    add,
    delete: remove,
    has: (item: T) => places.has(item),
    /** @returns the next one, which stays */
    first: (): T | undefined => end.after.item,
    take,
    get size() {
      return places.size
    },
  }
}

export type UniqueQueue<T> = ReturnType<typeof createUniqueQueue<T>>
