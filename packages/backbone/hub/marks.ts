// A node's progress, told to a link once the link was sent everything due until then. A mark stands in the queue of the
// link's due keys: when it comes up, everything before it has left.

/** No key can equal it: keys have no control characters. */
export const MARK = '\0mark'

/**
 * @param {object} deps
 * @param {(link: string, key: string) => void} deps.tell
 * @param {() => Record<string, number> | undefined} deps.lagsMs by namespace
 * @param {() => number} deps.now
 */
export function createMarks({ tell, lagsMs, now }) {
  /** @typedef {{ atMs: number, lagsMs: Record<string, number> }} Mark */
  /** `queued`: the mark in the link's queue; `passed`: the last one that came up. @type {Map<string, { queued?: Mark, passed?: Mark }>} */
  const byLink = new Map()

  return {
    /**
     * Begins the next mark of a link, unless one is under way. Returns the progress of the last one, as of now.
     *
     * @param {string} link
     */
    headsFor(link) {
      let marks = byLink.get(link)
      if (!marks) {
        marks = {}
        byLink.set(link, marks)
      }
      if (!marks.queued) {
        const lags = lagsMs()
        if (!lags) return undefined
        marks.queued = { atMs: now(), lagsMs: lags }
        tell(link, MARK)
      }
      const { passed } = marks
      if (!passed) return undefined
      const sinceMs = now() - passed.atMs
      return {
        lagsMs: Object.fromEntries(Object.entries(passed.lagsMs).map(([name, ms]) => [name, Math.ceil(ms + sinceMs)])),
      }
    },

    /** The mark of a link came up. @param {string} link */
    pass(link) {
      const marks = byLink.get(link)
      if (marks) byLink.set(link, { passed: marks.queued })
    },

    /** @param {string} link the link is lost */
    drop(link) {
      byLink.delete(link)
    },
  }
}
