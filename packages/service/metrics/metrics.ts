// Prometheus metrics under keycast_<service>_. One row declares each: its name, its help, its labels, and where its number
// comes from. Names end in a base unit and, for counters, _total. No label may name a key or a client: their number has no
// bound, and each would be a time series.
import { type Metric, Registry } from 'prom-client'
import { observeGc } from './gc.ts'
import { createHistogram, type Histogram } from './histogram.ts'
import { observeProcess } from './process-metrics.ts'
import type { Sample } from './samples.ts'

export { by } from './samples.ts'

export type MetricMakers = ReturnType<typeof createMakers>

export type Metrics = MetricMakers & { registry: Registry }

/**
 * The values of each label that are known, by its name. All are exported from the start: rate() takes what Prometheus sees
 * first for what was there before. Another value is there once it was counted.
 */
type Labels<Value extends string> = Readonly<Record<string, Iterable<Value>>>

/**
 * Makes a registry that already holds the metrics of the process, its event loop and its garbage collections.
 *
 * @param options `service`: the word between `keycast_` and a metric's own name
 */
export function createMetrics({ service }: { service: string }): Metrics {
  const registry = new Registry()
  const makers = createMakers(registry, `keycast_${service}_`)
  observeGc(makers)
  observeProcess(makers)
  return { registry, ...makers }
}

function createMakers(registry: Registry, prefix: string) {
  function add(name: string, help: string, type: 'counter' | 'gauge' | 'histogram', values: () => Sample[]) {
    const described = { name: prefix + name, help, type }
    const get = async () => ({ ...described, values: values() })
    // A registry asks no more of a metric than this. The classes that its types name are slow to count.
    registry.registerMetric({ ...described, get } as unknown as Metric)
  }

  const typeOf = (name: string) => (name.endsWith('_total') ? 'counter' : 'gauge')

  /** @returns counts an amount: one among all with the same values of the labels, which come in the order of `labels` */
  function sum<Value extends string>(name: string, help: string, labels: Labels<Value> = {}) {
    const counts = createSeries(labels, () => ({ value: 0 }))
    add(name, help, typeOf(name), () => counts.all().map(([labels, { value }]) => ({ labels, value })))
    return (amount: number, ...values: Value[]) => {
      counts.of(values).value += amount
    }
  }

  return {
    sum,

    /** As {@link MetricMakers.sum}, of events. */
    count<Value extends string>(name: string, help: string, labels?: Labels<Value>) {
      const add = sum(name, help, labels)
      return (...values: Value[]) => add(1, ...values)
    },

    /**
     * @param buckets their upper ends, rising
     * @returns observes an amount: in milliseconds for what is exported in seconds
     */
    histogram<Value extends string>(name: string, help: string, buckets: number[], labels: Labels<Value> = {}) {
      const scale = name.endsWith('_seconds') ? 1_000 : 1
      const histograms = createSeries(labels, () => createHistogram(buckets, scale))
      add(name, help, 'histogram', () => histograms.all().flatMap(([labels, of]) => of.samples(prefix + name, labels)))
      return (amount: number, ...values: Value[]) => histograms.of(values).observe(amount)
    },

    /** Exports what the service keeps itself. @param from asked at each scrape; nothing is exported of `undefined` */
    read(name: string, help: string, from: Histogram | (() => number | undefined | Sample[])) {
      if (typeof from !== 'function') return add(name, help, 'histogram', () => from.samples(prefix + name, {}))
      add(name, help, typeOf(name), () => {
        const found = from() ?? []
        return typeof found === 'number' ? [{ value: found }] : found
      })
    },
  }
}

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
