// Brings items up when it is time to look at them: requests past their deadline, values that grow old, tokens that end.

/** An item may come up too late by this much: whoever looks does so once in this time. */
export const SWEEP_MS = 250

/** `calendarPage`: Infinity while it stands on none. */
interface Scheduled {
  calendarPage: number
}

export type Calendar<T extends Scheduled> = ReturnType<typeof createCalendar<T>>

/**
 * A calendar with a page per {@link SWEEP_MS}, on which each item stands at most once. Moving a deadline back costs
 * nothing: an item that comes up early is looked at and scheduled anew, so a watched key is touched once per deadline
 * and not at each sweep or answer. Its clock may leap either way.
 */
export function createCalendar<T extends Scheduled>() {
  const pages = new Map<number, Set<T>>()
  /** Every page up to this one was opened. */
  let reached = Number.NEGATIVE_INFINITY
  /** The page whose items are being taken out. */
  let opened: { page: number; items: Iterator<T> } | undefined

  /** Brings the item up at this time, unless it comes up earlier anyway. One whose time is past comes up with the next sweep. */
  function schedule(item: T, atMs: number) {
    const page = Math.max(reached + 1, Math.ceil(atMs / SWEEP_MS))
    if (item.calendarPage <= page) return
    cancel(item)
    item.calendarPage = page
    const scheduled = pages.get(page)
    if (scheduled) scheduled.add(item)
    else pages.set(page, new Set([item]))
  }

  /** Takes the item out. The calendar would otherwise keep an unwanted item in memory until its time. */
  function cancel(item: T) {
    const page = item.calendarPage
    if (page === Number.POSITIVE_INFINITY) return
    item.calendarPage = Number.POSITIVE_INFINITY
    const scheduled = pages.get(page)
    scheduled?.delete(item)
    if (scheduled?.size === 0) pages.delete(page)
  }

  /**
   * Takes out one item whose time has come; looking at it may schedule it again.
   *
   * @returns `undefined` where there is none
   */
  function takeDue(nowMs: number): T | undefined {
    for (;;) {
      for (let next = opened?.items.next(); next && !next.done; next = opened?.items.next()) {
        const item = next.value
        // The item was cancelled since, or scheduled for another time.
        if (item.calendarPage !== opened?.page) continue
        item.calendarPage = Number.POSITIVE_INFINITY
        return item
      }
      opened = openNext(Math.floor(nowMs / SWEEP_MS))
      if (!opened) return undefined
    }
  }

  function openNext(lastPage: number): { page: number; items: Iterator<T> } | undefined {
    // The clock was set back: its pages come once more.
    reached = Math.min(reached, lastPage)
    // It leapt ahead: what lies between holds little.
    if (lastPage - reached > pages.size) reached = Math.min(lastPage, firstPage()) - 1
    while (reached < lastPage) {
      const page = ++reached
      const items = pages.get(page)
      pages.delete(page)
      if (items) return { page, items: items.values() }
    }
    return undefined
  }

  function firstPage() {
    let first = Number.POSITIVE_INFINITY
    for (const page of pages.keys()) first = Math.min(first, page)
    return first
  }

  return { schedule, cancel, takeDue, pageCount: () => pages.size }
}
