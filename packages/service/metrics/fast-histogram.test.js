import { createFastHistogram } from './fast-histogram.js'
import { createMetrics } from './metrics.js'

test('a fast histogram is exported as one of prom-client with the same observations', async () => {
  const { registry, fastHistogram, histogram } = createMetrics({ service: 'test' })
  const buckets = [0.001, 0.01, 0.1]
  const counted = createFastHistogram(buckets)
  fastHistogram({ name: 'one_seconds', help: 'One.', source: counted })
  const other = histogram({ name: 'other_seconds', help: 'One.', buckets })

  for (const ms of [0, 1, 1.5, 10, 99, 100, 5_000]) {
    counted.observe(ms)
    other.observe(ms / 1_000)
  }

  const text = await registry.metrics()
  const of = (/** @type {string} */ name) =>
    text
      .split('\n')
      .filter(line => line.includes(`keycast_test_${name}_seconds`))
      .map(line => line.replace(name, ''))
  expect(of('one')).toEqual(of('other'))
  expect(of('one')).toHaveLength(8)
})
