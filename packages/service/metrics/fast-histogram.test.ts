import type { Registry } from 'prom-client'
import { createFastHistogram } from './fast-histogram.ts'
import { createMetrics } from './metrics.ts'

const OBSERVED_MS = [0, 1, 1.5, 10, 99, 100, 5_000]

/** The exported lines of a histogram, without its name. */
async function linesOf(registry: Registry, name: string) {
  const prefix = `keycast_test_${name}_seconds`
  const lines = (await registry.metrics()).split('\n').filter(line => line.startsWith(prefix))
  return lines.map(line => line.slice(prefix.length))
}

test('a fast histogram is exported as one of prom-client with the same observations', async () => {
  const { registry, fastHistogram, histogram } = createMetrics({ service: 'test' })
  const buckets = [0.001, 0.01, 0.1]
  const counted = createFastHistogram(buckets)
  fastHistogram({ name: 'one_seconds', help: 'One.', source: counted })
  const other = histogram({ name: 'other_seconds', help: 'One.', buckets })

  for (const ms of OBSERVED_MS) {
    counted.observe(ms)
    other.observe(ms / 1_000)
  }

  expect(await linesOf(registry, 'one')).toEqual(await linesOf(registry, 'other'))
  expect(await linesOf(registry, 'one')).toHaveLength(6)
})

test('several with labels are exported under one name, also those without an observation and those that came later', async () => {
  const { registry, fastHistogram, histogram } = createMetrics({ service: 'test' })
  const buckets = [0.001, 0.1]
  const newSeries = (outcome: string) => ({
    labels: { origin: 'http://a', outcome },
    histogram: createFastHistogram(buckets),
  })
  const series = [newSeries('value')]
  fastHistogram({ name: 'one_seconds', help: 'One.', series })
  series.push(newSeries('failed'), newSeries('never'))
  const other = histogram({ name: 'other_seconds', help: 'One.', labelNames: ['origin', 'outcome'], buckets })

  for (const { labels } of series) other.zero(labels)
  for (const { labels, histogram } of series.slice(0, 2)) {
    for (const ms of OBSERVED_MS) {
      histogram.observe(ms)
      other.observe(labels, ms / 1_000)
    }
  }

  expect(await linesOf(registry, 'one')).toEqual(await linesOf(registry, 'other'))
  expect(await linesOf(registry, 'one')).toHaveLength(15)
})
