// Prometheus metrics under keycast_<service>_. Names end in a base unit and, for counters, _total. No label may name a key
// or a client: their number has no bound, and each would be a time series.
import {
  Counter,
  type CounterConfiguration,
  Gauge,
  type GaugeConfiguration,
  Histogram,
  type HistogramConfiguration,
  Registry,
} from 'prom-client'
import { exportFastHistogram } from './fast-histogram.ts'
import { observeGc } from './gc.ts'
import { observeProcess } from './process-metrics.ts'

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
  const registers = [registry]
  return {
    counter: <L extends string = never>(options: Omit<CounterConfiguration<L>, 'registers'>): Counter<L> =>
      new Counter({ ...options, name: prefix + options.name, registers }),
    gauge: <L extends string = never>(options: Omit<GaugeConfiguration<L>, 'registers'>): Gauge<L> =>
      new Gauge({ ...options, name: prefix + options.name, registers }),
    histogram: <L extends string = never>(options: Omit<HistogramConfiguration<L>, 'registers'>): Histogram<L> =>
      new Histogram({ ...options, name: prefix + options.name, registers }),
    fastHistogram: (options: Parameters<typeof exportFastHistogram>[0]) =>
      registry.registerMetric(exportFastHistogram({ ...options, name: prefix + options.name })),
  }
}
