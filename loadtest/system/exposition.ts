// Reads the figures of a service from its /metrics page (Prometheus text exposition format).

/**
 * The figures of a service from its Prometheus metrics (text exposition format), whatever the service's name in them.
 */
export function readExposition(text: string) {
  const cpuSeconds = sumIn(text, 'process_cpu_seconds_total')
  return {
    cpuMs: cpuSeconds === undefined ? undefined : cpuSeconds * 1_000,
    residentBytes: sumIn(text, 'process_resident_memory_bytes'),
    heapBytes: sumIn(text, 'v8_heap_used_bytes'),
    majorGcs: sumIn(text, 'gc_runs_total', '\\{kind="major"\\}'),
  }
}

/** @param labels a pattern */
export function sumIn(text: string, name: string, labels = '(?:\\{[^}]*\\})?'): number | undefined {
  const found = [...text.matchAll(new RegExp(`^keycast_[a-z]+(?:_[a-z]+)*?_${name}${labels} (\\S+)`, 'gm'))]
  return found.length === 0 ? undefined : found.reduce((sum, [, value]) => sum + Number(value), 0)
}
