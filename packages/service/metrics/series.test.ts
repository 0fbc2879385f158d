import { Histogram, Registry } from 'prom-client'
import { createMetrics } from './metrics.ts'

const OBSERVED_MS = [0, 1, 1.5, 10, 99, 100, 5_000]
const buckets = [0.001, 0.01, 0.1]

/** The exported lines of a histogram, without its name. */
async function linesOf(registry: Registry, name: string) {
  const lines = (await registry.metrics()).split('\n').filter(line => line.startsWith(name))
  return lines.map(line => line.slice(name.length))
}

test('a histogram is exported as one of prom-client with the same observations', async () => {
  const { registry, histogram } = createMetrics({ service: 'test' })
  const observe = histogram('one_seconds', 'One.', buckets)
  const registers = [new Registry()]
  const other = new Histogram({ name: 'other', help: 'One.', buckets, registers })

  for (const ms of OBSERVED_MS) {
    observe(ms)
    other.observe(ms / 1_000)
  }

  const lines = await linesOf(registry, 'keycast_test_one_seconds')
  expect(lines).toEqual(await linesOf(registers[0], 'other'))
  expect(lines).toHaveLength(6)
})

test('several with labels are exported under one name, also those without an observation and those that came later', async () => {
  const { registry, histogram } = createMetrics({ service: 'test' })
  const observe = histogram<string>('one_seconds', 'One.', buckets, {
    origin: ['http://a'],
    outcome: ['value', 'never'],
  })
  const labelNames = ['origin', 'outcome']
  const registers = [new Registry()]
  const other = new Histogram({ name: 'other', help: 'One.', labelNames, buckets, registers })

  for (const outcome of ['value', 'never', 'failed']) other.zero({ origin: 'http://a', outcome })
  for (const outcome of ['value', 'failed']) {
    for (const ms of OBSERVED_MS) {
      observe(ms, 'http://a', outcome)
      other.observe({ origin: 'http://a', outcome }, ms / 1_000)
    }
  }

  const lines = await linesOf(registry, 'keycast_test_one_seconds')
  expect(lines).toEqual(await linesOf(registers[0], 'other'))
  expect(lines).toHaveLength(18)
})
