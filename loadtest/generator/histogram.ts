// Latencies as HdrHistograms: recorded in microseconds, sent between processes, merged; percentiles are never averaged.
import type { Histogram } from 'hdr-histogram-js'
import * as hdr from 'hdr-histogram-js'

export interface LatencySummary {
  count: number
  meanMs: number
  p50Ms: number
  p90Ms: number
  p99Ms: number
  p999Ms: number
  maxMs: number
}

/** Far above any time-out: what takes longer is no latency but a loss. */
const LATENCY_US_MAX = 300_000_000

/** Microseconds, three significant digits: an error of 0.1 % at most. */
export const createHistogram = () =>
  hdr.build({ lowestDiscernibleValue: 1, highestTrackableValue: LATENCY_US_MAX, numberOfSignificantValueDigits: 3 })

export function record(histogram: Histogram, us: number, count = 1) {
  const value = recordable(us)
  if (count === 1) histogram.recordValue(value)
  else histogram.recordValueWithCount(value, count)
}

function recordable(us: number) {
  // A clock read just before an earlier one of another process may differ by some microseconds: no latency is negative.
  return us < 0 ? 0 : us > LATENCY_US_MAX ? LATENCY_US_MAX : Math.round(us)
}

/** Each doubling has so many steps, and the first two have them together: those of a histogram of three digits. */
const STEPS = 1_024
const STEPS_BITS = 10

/**
 * Counts latencies for a histogram in an array of its own: `record` of the histogram takes ten times as long, which at a
 * million a second is a tenth of a core.
 */
export function createRecorder(histogram: Histogram) {
  /** By step; made with the first latency: most histograms need none. */
  let counts: Uint32Array | undefined

  return {
    record(us: number) {
      const value = recordable(us)
      const doublings = Math.max(0, 31 - STEPS_BITS - Math.clz32(value))
      counts ??= new Uint32Array(stepsBelow(LATENCY_US_MAX))
      counts[doublings * STEPS + (value >>> doublings)]++
    },

    /** Gives the histogram what was counted. */
    flush() {
      if (counts === undefined) return
      for (let index = 0; index < counts.length; index++) {
        if (counts[index] === 0) continue
        const doublings = Math.max(0, Math.floor(index / STEPS) - 1)
        histogram.recordValueWithCount((index - doublings * STEPS) * 2 ** doublings, counts[index])
        counts[index] = 0
      }
    },
  }
}

const stepsBelow = (value: number) => (33 - STEPS_BITS - Math.clz32(value)) * STEPS

/** The observations since the last call, as text for another process. */
export function takeEncoded(histogram: Histogram) {
  if (histogram.totalCount === 0) return ''
  const text = hdr.encodeIntoCompressedBase64(histogram)
  histogram.reset()
  return text
}

/** @param encoded by {@link takeEncoded} */
export function merge(into: Histogram, encoded: string) {
  if (encoded !== '') into.add(hdr.decodeFromCompressedBase64(encoded))
}

export const encode = (histogram: Histogram) => hdr.encodeIntoCompressedBase64(histogram)

export function summarize(histogram: Histogram): LatencySummary {
  const at = (percentile: number) => toMs(histogram.getValueAtPercentile(percentile))
  return {
    count: histogram.totalCount,
    meanMs: histogram.totalCount === 0 ? 0 : toMs(histogram.mean),
    p50Ms: at(50),
    p90Ms: at(90),
    p99Ms: at(99),
    p999Ms: at(99.9),
    maxMs: at(100),
  }
}

/** The curve a latency chart draws: latency by percentile, denser towards the end. */
export function curve(histogram: Histogram) {
  if (histogram.totalCount === 0) return []
  const points = []
  // Each step halves what is left above, so that 99 %, 99.9 % and 99.99 % lie at even distances.
  for (let above = 1; above > 0.9 / histogram.totalCount && above > 1e-6; above /= Math.SQRT2) {
    const percentile = 100 * (1 - above)
    points.push({ percentile, above, ms: toMs(histogram.getValueAtPercentile(percentile)) })
  }
  points.push({ percentile: 100, above: 1 / (2 * histogram.totalCount), ms: toMs(histogram.getValueAtPercentile(100)) })
  return points
}

const toMs = (us: number) => Math.round(us) / 1_000
