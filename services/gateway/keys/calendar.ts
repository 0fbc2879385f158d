// Brings entries up when it is time to look at them: requests past their deadline, values that grow old.

/**
 * @template {{ calendarPage: number }} T
 * @typedef {ReturnType<typeof createCalendar<T>>} Calendar
 */

/** An entry may come up too late by this much: the period of the sweep. */
export const SWEEP_MS = 250

/**
 * A calendar with a page per {@link SWEEP_MS}, on which each entry stands at most once. Moving a deadline back costs
 * nothing: an entry that comes up early is looked at and scheduled anew, so a watched key is touched once per deadline
 * and not at each sweep or answer.
 *
 * @template {{ calendarPage: number }} T
 */
export function createCalendar() {
  /** @type {Map<number, Set<T>>} */
  const pages = new Map()
  let nextPage = 0
  /** The page whose entries are being taken out. @type {{ page: number, entries: Iterator<T> } | undefined} */
  let opened

  /**
   * Brings the entry up at this time, unless it comes up earlier anyway.
   *
   * @param {T} entry
   * @param {number} atMs monotonic
   */
  function schedule(entry, atMs) {
    const page = Math.max(nextPage, Math.ceil(atMs / SWEEP_MS))
    if (entry.calendarPage <= page) return
    cancel(entry)
    entry.calendarPage = page
    const scheduled = pages.get(page)
    if (scheduled) scheduled.add(entry)
    else pages.set(page, new Set([entry]))
  }

  /**
   * Takes the entry out. The calendar would otherwise keep an unwanted entry in memory until its time.
   *
   * @param {T} entry
   */
  function cancel(entry) {
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
   * @param {number} nowMs
   * @returns {T | undefined} `undefined` where there is none
   */
  function takeDue(nowMs) {
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

  /** @param {number} lastPage @returns {{ page: number, entries: Iterator<T> } | undefined} */
  function openNext(lastPage) {
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
