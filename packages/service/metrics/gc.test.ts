import { constants, PerformanceObserver } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createMetrics } from './metrics.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc')

test('every collection of a batch is counted, not only the first', async () => {
  const { registry } = createMetrics({ service: 'test' })
  // Observers are told in the order they began to observe, so after this one the metrics have counted.
  const delivered = new Promise(resolve => {
    let minors = 0
    new PerformanceObserver((list, observer) => {
      // They may come in several batches, and collections nobody asked for between them.
      for (const entry of list.getEntries()) {
        if ((entry as any).detail.kind === constants.NODE_PERFORMANCE_GC_MINOR) minors++
      }
      if (minors >= 5) resolve(observer.disconnect())
    }).observe({ entryTypes: ['gc'] })
  })
  // Minor ones: a major one takes a second where the heap holds what jest has kept of a hundred other files.
  for (let run = 0; run < 5; run += 1) collectGarbage({ type: 'minor' })
  await delivered

  const runs = await registry.getSingleMetric('keycast_test_gc_runs_total')?.get()
  const seconds = await registry.getSingleMetric('keycast_test_gc_seconds_total')?.get()
  expect(runs?.values.find(({ labels }) => labels.kind === 'minor')?.value).toBeGreaterThanOrEqual(5)
  expect(seconds?.values.find(({ labels }) => labels.kind === 'minor')?.value).toBeGreaterThan(0)
})

test('a kind that did not occur yet is exported as 0, so that a rate sees its first collection', async () => {
  const { registry } = createMetrics({ service: 'test' })
  const runs = await registry.getSingleMetric('keycast_test_gc_runs_total')?.get()
  expect(runs?.values.map(({ labels }) => labels.kind)).toEqual(['minor', 'major', 'incremental', 'weak_callbacks'])
})
