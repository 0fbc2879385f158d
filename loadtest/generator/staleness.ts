// Staleness at a viewer: the time from a change at the backend to the moment the viewer first sees it.
import { record } from './histogram.ts'

/** @typedef {{ revision: number }} Seen the newest revision a viewer has had; 0: none yet */

const newsIn = /"revision":(\d+),"changedAt":"([^"]+)"/

/**
 * @param {{ changeMs: number, histogram: import('./histogram.ts').Histogram, nowMs?: () => number }} options
 */
export function createStaleness({ changeMs, histogram, nowMs = Date.now }) {
  /** @param {Seen} seen @param {number} revision @param {number} changedAtMs */
  const saw = (seen, revision, changedAtMs) => {
    if (revision <= seen.revision) return false
    // The first one says when the viewer came, not how late a change was.
    if (seen.revision > 0) record(histogram, (nowMs() - changedAtMs) * 1_000)
    seen.revision = revision
    return true
  }

  return {
    /** @returns {Seen} */
    viewer: () => ({ revision: 0 }),

    /**
     * A document has come to a viewer.
     *
     * @param {Seen} seen
     * @param {string} text its beginning
     * @returns {boolean} whether it was news
     */
    sawDocument(seen, text) {
      const found = newsIn.exec(text)
      return found !== null && saw(seen, Number(found[1]), Date.parse(found[2]))
    },

    /**
     * A difference has come, which does not name its revision. Documents change at whole periods of the wall clock, and
     * a change that took longer than a period would not have been sent on its own: it is the latest.
     *
     * @param {Seen} seen
     */
    sawDifference(seen) {
      const revision = Math.floor(nowMs() / changeMs)
      return saw(seen, revision, revision * changeMs)
    },
  }
}
