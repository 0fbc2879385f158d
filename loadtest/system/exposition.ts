// Reads the figures of a service from its /metrics page (Prometheus text exposition format).

/**
 * The figures of a service from its Prometheus metrics (text exposition format), whatever the service's name in them.
 *
 * @param {string} text
 */
export function readExposition(text) {
  const cpuSeconds = sumIn(text, 'process_cpu_seconds_total')
  return {
    cpuMs: cpuSeconds === undefined ? undefined : cpuSeconds * 1_000,
    residentBytes: sumIn(text, 'process_resident_memory_bytes'),
    heapBytes: sumIn(text, 'v8_heap_used_bytes'),
    majorGcs: sumIn(text, 'gc_runs_total', '\\{kind="major"\\}'),
  }
}

/** @param {string} text @param {string} name @param {string} [labels] a pattern @returns {number | undefined} */
export function sumIn(text, name, labels = '(?:\\{[^}]*\\})?') {
  const found = [...text.matchAll(new RegExp(`^keycast_[a-z]+(?:_[a-z]+)*?_${name}${labels} (\\S+)`, 'gm'))]
  return found.length === 0 ? undefined : found.reduce((sum, [, value]) => sum + Number(value), 0)
}
