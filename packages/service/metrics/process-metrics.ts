// Measures the process and its event loop. prom-client's defaults would walk every open handle at each scrape, which with
// many thousand sockets is a pause of its own, and reset their lag at each scrape, which two scrapers spoil.
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { MetricMakers } from './metrics.ts'
import { by } from './samples.ts'

/** Often enough to catch half of the pauses of 50 ms. Five times as often took 0.3 % of a core in an idle process. */
const LAG_SAMPLE_MS = 100

/** Measures from now on. It does not keep the process from exiting. */
export function observeProcess({ read, histogram }: MetricMakers) {
  read('process_cpu_seconds_total', 'CPU time of the process.', () => {
    const { user, system } = process.cpuUsage()
    return by('mode', { user: user / 1e6, system: system / 1e6 })
  })
  const startedAt = performance.timeOrigin / 1_000
  read('process_start_time_seconds', 'When the process started, in Unix time.', () => startedAt)
  read('process_resident_memory_bytes', 'Memory of the process held in RAM.', () => process.memoryUsage.rss())
  read(
    'memory_available_bytes',
    'Memory the process can still get, within the limit of its container if it has one.',
    () => process.availableMemory(),
  )
  read('v8_heap_used_bytes', 'V8 heap in use.', () => getHeapStatistics().used_heap_size)
  read('v8_heap_limit_bytes', 'V8 heap size at which the process crashes.', () => getHeapStatistics().heap_size_limit)
  read(
    'v8_external_memory_bytes',
    'Memory of Buffers and other objects outside the V8 heap.',
    () => getHeapStatistics().external_memory,
  )

  // Counters, not the ratio: rate(active) / (rate(active) + rate(idle)) is right over any span, for any scraper.
  read(
    'event_loop_active_seconds_total',
    'Time the event loop was busy. Active / (active + idle) is its utilization.',
    () => performance.eventLoopUtilization().active / 1_000,
  )
  read(
    'event_loop_idle_seconds_total',
    'Time the event loop waited for something to do.',
    () => performance.eventLoopUtilization().idle / 1_000,
  )
  const observeLag = histogram(
    'event_loop_lag_seconds',
    `How late a timer of ${LAG_SAMPLE_MS} ms fires.`,
    [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  )
  let due = performance.now() + LAG_SAMPLE_MS
  const timer = setInterval(() => {
    const now = performance.now()
    observeLag(Math.max(0, now - due))
    due = now + LAG_SAMPLE_MS
  }, LAG_SAMPLE_MS)
  timer.unref()
}
