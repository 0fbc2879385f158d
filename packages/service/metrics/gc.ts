// Counts garbage collections by kind. prom-client's own metric reads only the first entry of each batch and misses most.
import { constants, PerformanceObserver } from 'node:perf_hooks'

/** @typedef {import('node:perf_hooks').PerformanceEntry & { detail: { kind: number } }} GcEntry */

/** @type {Record<number, string>} */
const kinds = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weak_callbacks',
}

/**
 * Counts every collection from now on.
 *
 * @param {import('./metrics.ts').MetricMakers} make
 */
export function observeGc({ counter }) {
  const runs = counter({ name: 'gc_runs_total', help: 'Garbage collections.', labelNames: ['kind'] })
  const seconds = counter({ name: 'gc_seconds_total', help: 'Time spent collecting garbage.', labelNames: ['kind'] })
  // Without a zero to start from, increase() would miss the first collection of a kind.
  for (const kind of Object.values(kinds)) {
    runs.inc({ kind }, 0)
    seconds.inc({ kind }, 0)
  }
  const observer = new PerformanceObserver(list => {
    for (const entry of /** @type {GcEntry[]} */ (list.getEntries())) {
      const kind = kinds[entry.detail.kind] ?? 'other'
      runs.inc({ kind })
      seconds.inc({ kind }, entry.duration / 1_000)
    }
  })
  observer.observe({ entryTypes: ['gc'] })
}
