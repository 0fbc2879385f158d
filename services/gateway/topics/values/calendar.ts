// Brings entries up when it is time to look at them: requests past their deadline, values that grow old.

export type Calendar<T extends { calendarPage: number }> = ReturnType<typeof createCalendar<T>>

/** An entry may come up too late by this much: the period of the sweep. */
export const SWEEP_MS = 250

/**
 * A calendar with a page per {@link SWEEP_MS}, on which each entry stands at most once. Moving a deadline back costs
 * nothing: an entry that comes up early is looked at and scheduled anew, so a watched key is touched once per deadline
 * and not at each sweep or answer.
 */
export function createCalendar<T extends { calendarPage: number }>() {
  const pages = new Map<number, Set<T>>()
  let nextPage = 0
  /** The page whose entries are being taken out. */
  let opened: { page: number; entries: Iterator<T> } | undefined

  /**
   * Brings the entry up at this time, unless it comes up earlier anyway.
   *
   * @param atMs monotonic
   */
  function schedule(entry: T, atMs: number) {
    const page = Math.max(nextPage, Math.ceil(atMs / SWEEP_MS))
    if (entry.calendarPage <= page) return
    cancel(entry)
    entry.calendarPage = page
    const scheduled = pages.get(page)
    if (scheduled) scheduled.add(entry)
    else pages.set(page, new Set([entry]))
  }

  /** Takes the entry out. The calendar would otherwise keep an unwanted entry in memory until its time. */
  function cancel(entry: T) {
    const page = entry.calendarPage
    if (page === Number.POSITIVE_INFINITY) return
    entry.calendarPage = Number.POSITIVE_INFINITY
    const scheduled = pages.get(page)
    scheduled?.delete(entry)
    if (scheduled?.size === 0) pages.delete(page)
  }

  /**
   * Takes out one entry whose time has come; looking at it may schedule it again.
   *
   * @returns `undefined` where there is none
   */
  function takeDue(nowMs: number): T | undefined {
    const lastPage = Math.floor(nowMs / SWEEP_MS)
    for (;;) {
      for (let next = opened?.entries.next(); next && !next.done; next = opened?.entries.next()) {
        const entry = next.value
        // The entry was cancelled since, or scheduled for another time.
        if (entry.calendarPage !== opened?.page) continue
        entry.calendarPage = Number.POSITIVE_INFINITY
        return entry
      }
      opened = openNext(lastPage)
      if (!opened) return undefined
    }
  }

  function openNext(lastPage: number): { page: number; entries: Iterator<T> } | undefined {
    while (nextPage <= lastPage) {
      const page = nextPage++
      const scheduled = pages.get(page)
      pages.delete(page)
      if (scheduled) return { page, entries: scheduled.values() }
    }
    return undefined
  }

  return { schedule, cancel, takeDue, pageCount: () => pages.size }
}
