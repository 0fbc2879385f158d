// Measures the process and its event loop. prom-client's defaults would walk every open handle at each scrape, which with
// many thousand sockets is a pause of its own, and reset their lag at each scrape, which two scrapers spoil.
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { MetricMakers } from './metrics.ts'

/** Often enough to catch most pauses of 50 ms, seldom enough to cost nothing. */
const LAG_SAMPLE_MS = 20

/** Measures from now on. It does not keep the process from exiting. */
export function observeProcess({ counter, gauge, histogram }: MetricMakers) {
  counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of the process.',
    labelNames: ['mode'],
    collect() {
      const { user, system } = process.cpuUsage()
      this.reset()
      this.inc({ mode: 'user' }, user / 1e6)
      this.inc({ mode: 'system' }, system / 1e6)
    },
  })
  gauge({
    name: 'process_start_time_seconds',
    help: 'When the process started, in Unix time.',
  }).set(performance.timeOrigin / 1_000)
  gauge({
    name: 'process_resident_memory_bytes',
    help: 'Memory of the process held in RAM.',
    collect() {
      this.set(process.memoryUsage.rss())
    },
  })
  gauge({
    name: 'memory_available_bytes',
    help: 'Memory the process can still get, within the limit of its container if it has one.',
    collect() {
      this.set(process.availableMemory())
    },
  })
  gauge({
    name: 'v8_heap_used_bytes',
    help: 'V8 heap in use.',
    collect() {
      this.set(getHeapStatistics().used_heap_size)
    },
  })
  gauge({
    name: 'v8_heap_limit_bytes',
    help: 'V8 heap size at which the process crashes.',
  }).set(getHeapStatistics().heap_size_limit)
  gauge({
    name: 'v8_external_memory_bytes',
    help: 'Memory of Buffers and other objects outside the V8 heap.',
    collect() {
      this.set(getHeapStatistics().external_memory)
    },
  })

  // Counters, not the ratio: rate(active) / (rate(active) + rate(idle)) is right over any span, for any scraper.
  counter({
    name: 'event_loop_active_seconds_total',
    help: 'Time the event loop was busy. Active / (active + idle) is its utilization.',
    collect() {
      this.reset()
      this.inc(performance.eventLoopUtilization().active / 1_000)
    },
  })
  counter({
    name: 'event_loop_idle_seconds_total',
    help: 'Time the event loop waited for something to do.',
    collect() {
      this.reset()
      this.inc(performance.eventLoopUtilization().idle / 1_000)
    },
  })
  const lag = histogram({
    name: 'event_loop_lag_seconds',
    help: `How late a timer of ${LAG_SAMPLE_MS} ms fires.`,
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  })
  let due = performance.now() + LAG_SAMPLE_MS
  const timer = setInterval(() => {
    const now = performance.now()
    lag.observe(Math.max(0, now - due) / 1_000)
    due = now + LAG_SAMPLE_MS
  }, LAG_SAMPLE_MS)
  timer.unref()
}
