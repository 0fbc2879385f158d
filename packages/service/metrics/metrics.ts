// Prometheus metrics under keycast_<service>_. Names end in a base unit and, for counters, _total. No label may name a key
// or a client: their number has no bound, and each would be a time series.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { exportFastHistogram } from './fast-histogram.ts'
import { observeGc } from './gc.ts'
import { observeProcess } from './process-metrics.ts'

/** @typedef {ReturnType<typeof createMakers>} MetricMakers */
/** @typedef {MetricMakers & { registry: Registry }} Metrics */

/**
 * Makes a registry that already holds the metrics of the process, its event loop and its garbage collections.
 *
 * @param {{ service: string }} options `service`: the word between `keycast_` and a metric's own name
 * @returns {Metrics}
 */
export function createMetrics({ service }) {
  const registry = new Registry()
  const makers = createMakers(registry, `keycast_${service}_`)
  observeGc(makers)
  observeProcess(makers)
  return { registry, ...makers }
}

/** @param {Registry} registry @param {string} prefix */
function createMakers(registry, prefix) {
  const registers = [registry]
  return {
    /**
     * @template {string} [L=never]
     * @param {Omit<import('prom-client').CounterConfiguration<L>, 'registers'>} options
     * @returns {Counter<L>}
     */
    counter: options => new Counter({ ...options, name: prefix + options.name, registers }),
    /**
     * @template {string} [L=never]
     * @param {Omit<import('prom-client').GaugeConfiguration<L>, 'registers'>} options
     * @returns {Gauge<L>}
     */
    gauge: options => new Gauge({ ...options, name: prefix + options.name, registers }),
    /**
     * @template {string} [L=never]
     * @param {Omit<import('prom-client').HistogramConfiguration<L>, 'registers'>} options
     * @returns {Histogram<L>}
     */
    histogram: options => new Histogram({ ...options, name: prefix + options.name, registers }),
    /** @param {Parameters<typeof exportFastHistogram>[0]} options */
    fastHistogram: options => registry.registerMetric(exportFastHistogram({ ...options, name: prefix + options.name })),
  }
}
