// Counts and latencies of one generator process since its last report. Reports carry differences, so that they can be
// added up over processes and over seconds.
import { createHistogram, createRecorder, takeEncoded } from './histogram.ts'

/** Enough reasons to understand a failure; a broken system must not make the reports grow without end. */
const REASONS_MAX = 20

/**
 * @typedef {Record<string, number>} Counts
 * @typedef {{ counts: Counts, reasons: Counts, histograms: Record<string, string> }} TallyReport
 * @typedef {ReturnType<typeof createTally>} Tally
 */

/**
 * @template {string} C
 * @template {string} H
 * @param {{ counts: readonly C[], histograms: readonly H[] }} names
 */
export function createTally({ counts: countNames, histograms: histogramNames }) {
  const counts = /** @type {Record<C, number>} */ (Object.fromEntries(countNames.map(name => [name, 0])))
  const histograms = /** @type {Record<H, import('./histogram.ts').Histogram>} */ (
    Object.fromEntries(histogramNames.map(name => [name, createHistogram()]))
  )
  const recorders = histogramNames.map(name => createRecorder(histograms[name]))
  /** @type {Counts} */
  let reasons = {}

  return {
    /** Counted up directly: at a million messages a second a call each is too dear. */
    counts,
    histograms,
    /** Records a latency in microseconds where there are very many. */
    recorders: /** @type {Record<H, (us: number) => void>} */ (
      Object.fromEntries(histogramNames.map((name, index) => [name, recorders[index].record]))
    ),

    /** Counts the reason of a failure: an error code, a socket's error. @param {string} reason */
    because(reason) {
      if (reasons[reason] === undefined && Object.keys(reasons).length >= REASONS_MAX) reason = 'other reasons'
      reasons[reason] = (reasons[reason] ?? 0) + 1
    },

    /** @returns {TallyReport} */
    take() {
      for (const { flush } of recorders) flush()
      const report = {
        counts: { ...counts },
        reasons,
        histograms: Object.fromEntries(histogramNames.map(name => [name, takeEncoded(histograms[name])])),
      }
      for (const name of countNames) counts[name] = 0
      reasons = {}
      return report
    },
  }
}
