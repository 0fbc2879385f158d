// Counts garbage collections by kind. prom-client's own metric reads only the first entry of each batch and misses most.
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import type { MetricMakers } from './metrics.ts'

type GcEntry = PerformanceEntry & { detail: { kind: number } }

const kinds: Record<number, string> = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weak_callbacks',
}

/** Counts every collection from now on. */
export function observeGc({ count, sum }: MetricMakers) {
  const labels = { kind: Object.values(kinds) }
  const ran = count('gc_runs_total', 'Garbage collections.', labels)
  const took = sum('gc_seconds_total', 'Time spent collecting garbage.', labels)
  const observer = new PerformanceObserver(list => {
    for (const entry of list.getEntries() as GcEntry[]) {
      const kind = kinds[entry.detail.kind] ?? 'other'
      ran(kind)
      took(entry.duration / 1_000, kind)
    }
  })
  observer.observe({ entryTypes: ['gc'] })
}
