// Staleness at a viewer: the time from a change at the backend to the moment the viewer first sees it.
import type { Histogram } from 'hdr-histogram-js'
import { record } from './histogram.ts'

/** The newest revision a viewer has had; 0: none yet. */
interface Seen {
  revision: number
}

const newsIn = /"revision":(\d+),"changedAt":"([^"]+)"/

export function createStaleness({
  changeMs,
  histogram,
  nowMs = Date.now,
}: {
  changeMs: number
  histogram: Histogram
  nowMs?: () => number
}) {
  const saw = (seen: Seen, revision: number, changedAtMs: number) => {
    if (revision <= seen.revision) return false
    // The first one says when the viewer came, not how late a change was.
    if (seen.revision > 0) record(histogram, (nowMs() - changedAtMs) * 1_000)
    seen.revision = revision
    return true
  }

  return {
    viewer: (): Seen => ({ revision: 0 }),

    /**
     * A document has come to a viewer.
     *
     * @param text its beginning
     * @returns whether it was news
     */
    sawDocument(seen: Seen, text: string): boolean {
      const found = newsIn.exec(text)
      return found !== null && saw(seen, Number(found[1]), Date.parse(found[2]))
    },

    /**
     * A difference has come, which does not name its revision. Documents change at whole periods of the wall clock, and
     * a change that took longer than a period would not have been sent on its own: it is the latest.
     */
    sawDifference(seen: Seen) {
      const revision = Math.floor(nowMs() / changeMs)
      return saw(seen, revision, revision * changeMs)
    },
  }
}
