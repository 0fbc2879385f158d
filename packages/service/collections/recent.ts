// Entries in the order in which they were last set, for whatever keeps the newest and drops the oldest; and the queue that
// such an order makes. A Map alone is none: V8's iterators walk over all deleted entries, so dropping the first of 400,000
// one by one takes half a minute.

/** An entry in a ring whose other entries are its neighbours in the order. */
interface Entry<K, V> {
  key: K
  value: V
  before: Entry<K, V>
  after: Entry<K, V>
}

/** @param sizeMax above it the oldest entries go */
export function createRecent<K, V>(sizeMax = Number.POSITIVE_INFINITY) {
  const entries = new Map<K, Entry<K, V>>()
  /** Between the newest entry and the oldest. */
  const end = {} as Entry<K, V>
  end.before = end.after = end

  function link(entry: Entry<K, V>) {
    entry.before = end.before
    entry.after = end
    entry.before.after = entry
    end.before = entry
  }

  function unlink({ before, after }: Entry<K, V>) {
    before.after = after
    after.before = before
  }

  /** The entry is the newest from now on. */
  function set(key: K, value: V) {
    const known = entries.get(key)
    if (known) {
      known.value = value
      return renew(known)
    }
    const entry = { key, value } as Entry<K, V>
    entries.set(key, entry)
    link(entry)
    if (entries.size > sizeMax) takeOldest()
  }

  function renew(entry: Entry<K, V>) {
    if (entry === end.before) return
    unlink(entry)
    link(entry)
  }

  /** @returns whether it was there */
  function remove(key: K): boolean {
    const entry = entries.get(key)
    if (!entry) return false
    entries.delete(key)
    unlink(entry)
    return true
  }

  /** @returns the oldest entry, which stays */
  const oldest = (): { readonly key: K; readonly value: V } | undefined => (end.after === end ? undefined : end.after)

  /** @returns the oldest entry, which is out */
  function takeOldest() {
    const entry = oldest()
    if (entry) {
      entries.delete(entry.key)
      unlink(end.after)
    }
    return entry
  }

  return {
    set,
    get: (key: K): V | undefined => entries.get(key)?.value,

    /** As `get`; an entry that is there is the newest from now on. */
    use(key: K): V | undefined {
      const entry = entries.get(key)
      if (entry) renew(entry)
      return entry?.value
    },

    has: (key: K) => entries.has(key),
    delete: remove,
    oldest,
    takeOldest,
    /** Oldest first. The entry that is looked at may be taken out. */
    *[Symbol.iterator](): Generator<{ readonly key: K; readonly value: V }> {
      for (let entry = end.after; entry !== end; entry = entry.after) yield entry
    },
    get size() {
      return entries.size
    },
  }
}

/** First in, first out; holds each item once. An item that was deleted and added again stands at the end. */
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
