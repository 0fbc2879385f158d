// Counts and histograms for hot paths, one for each combination of labels. An observation adds to plain numbers, which are
// read at each scrape; one of prom-client's own takes ten times as long, because it looks up its labels each time.
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

/**
 * The values of each label that are known, by its name. All are exported from the start: rate() takes what Prometheus sees
 * first for what was there before. Another value is there once it was counted.
 */
export type Labels<Value extends string> = Readonly<Record<string, Iterable<Value>>>

/** One of what `create` makes for each combination of the labels' values. */
function createSeries<Of>(labels: Labels<string>, create: () => Of) {
  const names = Object.keys(labels)
  const series = new Map<string, [labels: Record<string, string>, of: Of]>()

  function add(values: string[]) {
    const made = create()
    series.set(values.join(), [Object.fromEntries(names.map((name, index) => [name, values[index]])), made])
    return made
  }

  let combinations: string[][] = [[]]
  for (const values of Object.values(labels)) {
    combinations = combinations.flatMap(each => [...values].map(value => [...each, value]))
  }
  combinations.forEach(add)
  return { all: () => [...series.values()], of: (values: string[]) => series.get(values.join())?.[1] ?? add(values) }
}

/** The values of the labels come in the order of `labels`. */
export function createCounts<Value extends string>(labels: Labels<Value>) {
  const series = createSeries(labels, () => ({ value: 0 }))
  return {
    sum(amount: number, ...values: Value[]) {
      series.of(values).value += amount
    },
    count(...values: Value[]) {
      series.of(values).value += 1
    },
    samples: (): Sample[] => series.all().map(([labels, { value }]) => ({ labels, value })),
  }
}

/** @param buckets as those of {@link createHistogram}, and `scale` */
export function createHistograms<Value extends string>(labels: Labels<Value>, buckets: number[], scale: number) {
  const series = createSeries(labels, () => createHistogram(buckets, scale))
  return {
    observe: (amount: number, ...values: Value[]) => series.of(values).observe(amount),
    samples: (name: string): Sample[] => series.all().flatMap(([labels, of]) => of.samples(name, labels)),
  }
}
