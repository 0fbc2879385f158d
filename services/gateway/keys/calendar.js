// Brings entries up again when something about them may be due: late answers, values that grow old.

/**
 * @typedef {import('./entry.js').Entry} Entry
 * @typedef {ReturnType<typeof createDeadlines>} Deadlines
 */

/** How late an entry may come up. Also the period of the sweep. */
export const SWEEP_MS = 250

/**
 * A calendar with a page per {@link SWEEP_MS}, on which each entry stands at most once. Moving a deadline back costs
 * nothing: an entry that comes up early is looked at and scheduled anew, so a watched key is touched once per deadline
 * and not at each sweep or answer.
 */
export function createDeadlines() {
  /** @type {Map<number, Set<Entry>>} */
  const pages = new Map()
  let nextPage = 0

  /**
   * Brings the entry up at that time, unless it comes up earlier anyway.
   *
   * @param {Entry} entry
   * @param {number} atMs monotonic
   */
  function schedule(entry, atMs) {
    const page = Math.max(nextPage, Math.ceil(atMs / SWEEP_MS))
    if (entry.deadlinePage <= page) return
    cancel(entry)
    entry.deadlinePage = page
    const scheduled = pages.get(page)
    if (scheduled) scheduled.add(entry)
    else pages.set(page, new Set([entry]))
  }

  /**
   * Nothing about the entry can be due. Without it, what nobody wants would be held here until its time.
   *
   * @param {Entry} entry
   */
  function cancel(entry) {
    const page = entry.deadlinePage
    if (page === Number.POSITIVE_INFINITY) return
    entry.deadlinePage = Number.POSITIVE_INFINITY
    const scheduled = pages.get(page)
    scheduled?.delete(entry)
    if (scheduled?.size === 0) pages.delete(page)
  }

  /**
   * Takes out what is due and looks at each; looking may schedule it again.
   *
   * @param {number} nowMs
   * @param {(entry: Entry) => void} look
   */
  function sweep(nowMs, look) {
    const firstPage = nextPage
    const lastPage = Math.floor(nowMs / SWEEP_MS)
    nextPage = lastPage + 1
    for (let page = firstPage; page <= lastPage; page++) {
      const due = pages.get(page)
      if (!due) continue
      pages.delete(page)
      for (const entry of due) {
        entry.deadlinePage = Number.POSITIVE_INFINITY
        look(entry)
      }
    }
  }

  return { schedule, cancel, sweep, pageCount: () => pages.size }
}
