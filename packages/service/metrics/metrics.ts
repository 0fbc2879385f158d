// Prometheus metrics under keycast_<service>_. One row declares each: its name, its help, its labels, and where its number
// comes from. Names end in a base unit and, for counters, _total. No label may name a key or a client: their number has no
// bound, and each would be a time series.
import type { Metric } from 'prom-client'
import { observeGc } from './gc.ts'
import { observeProcess } from './process-metrics.ts'
import { Registry } from './registry.ts'
import type { Sample } from './samples.ts'
import { createCounts, createHistograms, type Histogram, type Labels } from './series.ts'

export { by } from './samples.ts'

export type MetricMakers = ReturnType<typeof createMakers>

export type Metrics = MetricMakers & { registry: Registry }

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

  function counts<Value extends string>(name: string, help: string, labels: Labels<Value> = {}) {
    const made = createCounts(labels)
    add(name, help, typeOf(name), made.samples)
    return made
  }

  return {
    /** @returns counts an amount: one among all with the same values of the labels, which come in the order of `labels` */
    sum: <Value extends string>(name: string, help: string, labels?: Labels<Value>) => counts(name, help, labels).sum,

    /** As {@link MetricMakers.sum}, of events. */
    count: <Value extends string>(name: string, help: string, labels?: Labels<Value>) =>
      counts(name, help, labels).count,

    /**
     * @param buckets their upper ends, rising
     * @returns observes an amount: in milliseconds for what is exported in seconds
     */
    histogram<Value extends string>(name: string, help: string, buckets: number[], labels: Labels<Value> = {}) {
      const made = createHistograms(labels, buckets, name.endsWith('_seconds') ? 1_000 : 1)
      add(name, help, 'histogram', () => made.samples(prefix + name))
      return made.observe
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
