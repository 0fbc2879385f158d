// Brings entries up again when it is time to look at them: requests past their deadline, values that grow old.

/**
 * @template {{ calendarPage: number }} T
 * @typedef {ReturnType<typeof createCalendar<T>>} Calendar
 */

/** By how much an entry may come up too late: the period of the sweep. */
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

  /**
   * Brings the entry up at that time, unless it comes up earlier anyway.
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
   * Takes the entry out. An unwanted one would otherwise be kept in memory here until its time.
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
   * Takes out the entries whose time has come and looks at each; looking may schedule it again.
   *
   * @param {number} nowMs
   * @param {(entry: T) => void} look
   */
  function sweep(nowMs, look) {
    const firstPage = nextPage
    const lastPage = Math.floor(nowMs / SWEEP_MS)
    nextPage = lastPage + 1
    for (let page = firstPage; page <= lastPage; page++) {
      const scheduled = pages.get(page)
      if (!scheduled) continue
      pages.delete(page)
      for (const entry of scheduled) {
        entry.calendarPage = Number.POSITIVE_INFINITY
        look(entry)
      }
    }
  }

  return { schedule, cancel, sweep, pageCount: () => pages.size }
}
