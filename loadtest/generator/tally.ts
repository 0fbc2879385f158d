// Counts and latencies of one generator process since its last report. Reports carry differences, so that they can be
// added up over processes and over seconds.
import type { Histogram } from 'hdr-histogram-js'
import { createHistogram, createRecorder, takeEncoded } from './histogram.ts'

/** Enough reasons to understand a failure; a broken system must not make the reports grow without end. */
const REASONS_MAX = 20

type Counts = Record<string, number>

export interface TallyReport {
  counts: Counts
  reasons: Counts
  histograms: Record<string, string>
}

export type Tally = ReturnType<typeof createTally>

export function createTally<C extends string, H extends string>({
  counts: countNames,
  histograms: histogramNames,
}: {
  counts: readonly C[]
  histograms: readonly H[]
}) {
  const counts = Object.fromEntries(countNames.map(name => [name, 0])) as Record<C, number>
  const histograms = Object.fromEntries(histogramNames.map(name => [name, createHistogram()])) as Record<H, Histogram>
  const recorders = histogramNames.map(name => createRecorder(histograms[name]))
  let reasons: Counts = {}

  return {
    /** Counted up directly: at a million messages a second a call each is too dear. */
    counts,
    histograms,
    /** Records a latency in microseconds where there are very many. */
    recorders: Object.fromEntries(histogramNames.map((name, index) => [name, recorders[index].record])) as Record<
      H,
      (us: number) => void
    >,

    /** Counts the reason of a failure: an error code, a socket's error. */
    because(reason: string) {
      if (reasons[reason] === undefined && Object.keys(reasons).length >= REASONS_MAX) reason = 'other reasons'
      reasons[reason] = (reasons[reason] ?? 0) + 1
    },

    take(): TallyReport {
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
