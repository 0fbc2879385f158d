// Brings entries up again when something about them may be due: late answers, values that grow old.

/**
 * @typedef {import('./entry.js').Entry} Entry
 * @typedef {ReturnType<typeof createDeadlines>} Deadlines
 */

/** How late an entry may come up. Also the period of the sweep. */
export const SWEEP_MS = 250

/**
 * A calendar with a page per {@link SWEEP_MS}. Moving a deadline back costs nothing: an entry that comes up early is
 * looked at and scheduled anew, so a watched key is touched once per deadline and not at each sweep or answer.
 */
export function createDeadlines() {
  /** @type {Map<number, Entry[]>} */
  const pages = new Map()
  let nextPage = 0

  /**
   * Brings the entry up at that time, unless it comes up earlier anyway.
   *
   * @param {Entry} entry
   * @param {number} atMs monotonic
   */
  function schedule(entry, atMs) {
    if (entry.checkAtMs <= atMs) return
    const page = Math.max(nextPage, Math.ceil(atMs / SWEEP_MS))
    const scheduled = pages.get(page)
    if (scheduled) scheduled.push(entry)
    else pages.set(page, [entry])
    entry.checkAtMs = atMs
  }

  /**
   * Takes out what is due and looks at each; looking may schedule it again.
   *
   * @param {number} nowMs
   * @param {(entry: Entry) => void} look
   */
  function sweep(nowMs, look) {
    const lastPage = Math.floor(nowMs / SWEEP_MS)
    const due = [...pages.keys()].filter(page => page <= lastPage).sort((a, b) => a - b)
    nextPage = lastPage + 1
    for (const page of due) {
      const entries = /** @type {Entry[]} */ (pages.get(page))
      pages.delete(page)
      for (const entry of entries) {
        // Also on an earlier page, which brought it up already.
        if (entry.checkAtMs > nowMs) continue
        entry.checkAtMs = Number.POSITIVE_INFINITY
        look(entry)
      }
    }
  }

  return { schedule, sweep }
}
