// A histogram for hot paths. An observation adds to plain numbers, which are read at each scrape; one of prom-client's own
// takes ten times as long, because it looks up its labels each time.

/**
 * @typedef {ReturnType<typeof createFastHistogram>} FastHistogram
 *
 * One of several histograms under a name, each with its labels. The caller keeps them in a Map: a look-up is cheap there.
 * @typedef {{ labels: Record<string, string>, histogram: FastHistogram }} FastHistogramSeries
 */

/** @param {readonly number[]} buckets their upper ends in seconds, rising */
export function createFastHistogram(buckets) {
  const endsMs = buckets.map(end => end * 1_000)
  const counts = new Array(endsMs.length + 1).fill(0)
  let sumMs = 0

  return {
    /** @param {number} ms */
    observe(ms) {
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
 * @param {{ name: string, help: string } & ({ source: FastHistogram } | { series: readonly FastHistogramSeries[] })} options
 *   `series` is read at each scrape, and may grow
 * @returns {import('prom-client').Metric} for a registry to hold
 */
export function exportFastHistogram({ name, help, ...from }) {
  const type = 'histogram'
  const aggregator = 'sum'
  async function get() {
    const series = 'source' in from ? [{ labels: {}, histogram: from.source }] : from.series
    return { name, help, type, aggregator, values: series.flatMap(valuesOf) }
  }

  /** @param {FastHistogramSeries} series */
  function valuesOf({ labels: sharedLabels, histogram }) {
    const { buckets, sum, count } = histogram.read()
    // Formatted once for all lines: as `labels` of each they would take three times as long at a scrape.
    return [
      ...buckets.map(({ end, count }) => bucketOf(end, count, sharedLabels)),
      bucketOf('+Inf', count, sharedLabels),
      { metricName: `${name}_sum`, labels: {}, sharedLabels, value: sum },
      { metricName: `${name}_count`, labels: {}, sharedLabels, value: count },
    ]
  }

  /** @param {number | string} le @param {number} value @param {Record<string, string>} sharedLabels */
  function bucketOf(le, value, sharedLabels) {
    return { metricName: `${name}_bucket`, labels: { le }, sharedLabels, value }
  }
  // A registry asks no more of a metric than this. The class that its types name cannot be made without buckets of its own.
  return /** @type {import('prom-client').Metric} */ (/** @type {unknown} */ ({ name, help, type, aggregator, get }))
}
