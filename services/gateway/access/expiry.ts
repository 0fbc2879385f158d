// When sessions expire: one calendar for all of them, looked at by the gateway's sweep, in place of a timer each.

/** A session may go on for this long after its token has expired. It was told, and can renew it. */
export const GRACE_MS = 25_000

/** A session may come up later than the sweep's period by this much. A page of the calendar is as long. */
const PAGE_MS = 1_000

/**
 * Times are wall-clock ones, as `exp` is. A clock that is set back makes sessions live on until it comes to their time
 * again; one that is set forward ends them.
 */
interface Entry<T> {
  item: T
  expiresAtMs: number
  told: boolean
  page: number
}

interface Events<T extends object> {
  /** Once per token: to be told `token_expired`; may schedule or cancel. */
  expired: (item: T) => void
  /** The grace is over: to be closed with 4001; it stands in the calendar no more. */
  over: (item: T) => void
}

export function createExpiries<T extends object>({ expired, over }: Events<T>) {
  const entries = new Map<T, Entry<T>>()
  const pages = new Map<number, Set<Entry<T>>>()

  function put(entry: Entry<T>, atMs: number) {
    entry.page = Math.ceil(atMs / PAGE_MS)
    const page = pages.get(entry.page)
    if (page) page.add(entry)
    else pages.set(entry.page, new Set([entry]))
  }

  function takeOut(entry: Entry<T>) {
    const page = pages.get(entry.page)
    page?.delete(entry)
    if (page?.size === 0) pages.delete(entry.page)
  }

  function cancel(item: T) {
    const entry = entries.get(item)
    if (!entry) return
    entries.delete(item)
    takeOut(entry)
  }

  return {
    /** A session has a token, or another one. */
    schedule(item: T, expiresAtMs: number) {
      cancel(item)
      const entry = { item, expiresAtMs, told: false, page: 0 }
      entries.set(item, entry)
      put(entry, expiresAtMs)
    },

    /** A session ended: the calendar holds it no longer. */
    cancel,

    sweep(nowMs: number) {
      const lastPage = Math.floor(nowMs / PAGE_MS)
      // Pages that hold nothing are not in the map, so a clock that leaps costs nothing.
      const due = [...pages.keys()].filter(page => page <= lastPage).sort((a, b) => a - b)
      for (const number of due) {
        for (const entry of pages.get(number) ?? []) {
          takeOut(entry)
          if (nowMs >= entry.expiresAtMs + GRACE_MS) {
            entries.delete(entry.item)
            if (!entry.told) expired(entry.item)
            // Telling may have brought another token.
            if (!entries.has(entry.item)) over(entry.item)
            continue
          }
          entry.told = true
          put(entry, entry.expiresAtMs + GRACE_MS)
          expired(entry.item)
        }
      }
    },

    get size() {
      return entries.size
    },
  }
}

export type Expiries<T extends object> = ReturnType<typeof createExpiries<T>>
