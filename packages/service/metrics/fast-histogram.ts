// A histogram for hot paths. An observation adds to plain numbers, which are read at each scrape; one of prom-client's own
// takes ten times as long, because it looks up its labels each time.
import type { Metric } from 'prom-client'

export type FastHistogram = ReturnType<typeof createFastHistogram>

/**
 * One of several histograms under a name, each with its labels. The caller keeps them in a Map: a look-up is cheap
 * there.
 */
export interface FastHistogramSeries {
  labels: Record<string, string>
  histogram: FastHistogram
}

/** @param buckets their upper ends in seconds, rising */
export function createFastHistogram(buckets: readonly number[]) {
  const endsMs = buckets.map(end => end * 1_000)
  const counts = new Array(endsMs.length + 1).fill(0)
  let sumMs = 0

  return {
    observe(ms: number) {
      let index = 0
      while (index < endsMs.length && ms > endsMs[index]) index++
      counts[index]++
      sumMs += ms
    },

    /** As Prometheus counts: each bucket includes all below it. */
    read() {
      let count = 0
      const cumulated = buckets.map((end, index) => {
        count += counts[index]
        return { end, count }
      })
      return { buckets: cumulated, sum: sumMs / 1_000, count: count + counts[buckets.length] }
    },
  }
}

/**
 * @param options `series` is read at each scrape, and may grow
 * @returns for a registry to hold
 */
export function exportFastHistogram({
  name,
  help,
  ...from
}: { name: string; help: string } & ({ source: FastHistogram } | { series: readonly FastHistogramSeries[] })): Metric {
  const type = 'histogram'
  const aggregator = 'sum'
  async function get() {
    const series = 'source' in from ? [{ labels: {}, histogram: from.source }] : from.series
    return { name, help, type, aggregator, values: series.flatMap(valuesOf) }
  }

  function valuesOf({ labels: sharedLabels, histogram }: FastHistogramSeries) {
    const { buckets, sum, count } = histogram.read()
    // Formatted once for all lines: as `labels` of each they would take three times as long at a scrape.
    return [
      ...buckets.map(({ end, count }) => bucketOf(end, count, sharedLabels)),
      bucketOf('+Inf', count, sharedLabels),
      { metricName: `${name}_sum`, labels: {}, sharedLabels, value: sum },
      { metricName: `${name}_count`, labels: {}, sharedLabels, value: count },
    ]
  }

  function bucketOf(le: number | string, value: number, sharedLabels: Record<string, string>) {
    return { metricName: `${name}_bucket`, labels: { le }, sharedLabels, value }
  }
  // A registry asks no more of a metric than this. The class that its types name cannot be made without buckets of its own.
  return { name, help, type, aggregator, get } as unknown as Metric
}
