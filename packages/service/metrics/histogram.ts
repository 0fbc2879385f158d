// A histogram for hot paths. An observation adds to plain numbers, which are read at each scrape; one of prom-client's own
// takes ten times as long, because it looks up its labels each time.
import type { Sample } from './samples.ts'

export type Histogram = ReturnType<typeof createHistogram>

/**
 * @param buckets their upper ends, rising
 * @param scale what is observed for each unit of the buckets: milliseconds, where those are seconds
 */
export function createHistogram(buckets: readonly number[], scale = 1_000) {
  const ends = buckets.map(end => end * scale)
  const counts: number[] = new Array(ends.length + 1).fill(0)
  let sum = 0

  return {
    observe(amount: number) {
      let index = 0
      while (index < ends.length && amount > ends[index]) index++
      counts[index]++
      sum += amount
    },

    /** As Prometheus counts: each bucket includes all below it. */
    samples(name: string, sharedLabels: Record<string, string>): Sample[] {
      let count = 0
      const lines = counts.map((each, index) => {
        count += each
        return { metricName: `${name}_bucket`, labels: { le: buckets[index] ?? '+Inf' }, sharedLabels, value: count }
      })
      return [
        ...lines,
        { metricName: `${name}_sum`, sharedLabels, value: sum / scale },
        { metricName: `${name}_count`, sharedLabels, value: count },
      ]
    },
  }
}
