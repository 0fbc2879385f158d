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
export function observeGc({ counter }: MetricMakers) {
  const runs = counter({ name: 'gc_runs_total', help: 'Garbage collections.', labelNames: ['kind'] })
  const seconds = counter({ name: 'gc_seconds_total', help: 'Time spent collecting garbage.', labelNames: ['kind'] })
  // Without a zero to start from, increase() would miss the first collection of a kind.
  for (const kind of Object.values(kinds)) {
    runs.inc({ kind }, 0)
    seconds.inc({ kind }, 0)
  }
  const observer = new PerformanceObserver(list => {
    for (const entry of list.getEntries() as GcEntry[]) {
      const kind = kinds[entry.detail.kind] ?? 'other'
      runs.inc({ kind })
      seconds.inc({ kind }, entry.duration / 1_000)
    }
  })
  observer.observe({ entryTypes: ['gc'] })
}
