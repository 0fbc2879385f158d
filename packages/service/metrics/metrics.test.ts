import { createMetrics } from './metrics.ts'

const samples = async ({ registry }: ReturnType<typeof createMetrics>) => {
  const lines = (await registry.metrics()).split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(lines.map(line => [line.split(' ')[0], Number(line.split(' ')[1])] as [string, number]))
}

test("a service's metrics carry its prefix", async () => {
  const metrics = createMetrics({ service: 'test' })
  metrics.sum('frames_total', 'Frames.', { kind: ['value', 'delta'] })(2, 'value')
  metrics.read('sessions', 'Sessions.', () => 3)
  metrics.read('age_seconds', 'Nothing is known of it.', () => undefined)
  metrics.histogram('fanout_seconds', 'Fan-out.', [0.1])(50)
  metrics.histogram('batch_messages', 'Messages.', [10])(11)
  const read = await samples(metrics)
  expect(read.get('keycast_test_frames_total{kind="value"}')).toBe(2)
  expect(read.get('keycast_test_frames_total{kind="delta"}')).toBe(0)
  expect(read.get('keycast_test_sessions')).toBe(3)
  expect(read.has('keycast_test_age_seconds')).toBe(false)
  expect(read.get('keycast_test_fanout_seconds_bucket{le="0.1"}')).toBe(1)
  expect(read.get('keycast_test_fanout_seconds_sum')).toBe(0.05)
  expect(read.get('keycast_test_batch_messages_bucket{le="10"}')).toBe(0)
  expect(read.get('keycast_test_batch_messages_sum')).toBe(11)
  for (const name of read.keys()) expect(name).toMatch(/^keycast_test_/)
})

test('registries are separate, so that several services can be tested in one process', async () => {
  createMetrics({ service: 'test' }).read('sessions', 'Sessions.', () => 1)
  const other = createMetrics({ service: 'test' })
  expect((await samples(other)).has('keycast_test_sessions')).toBe(false)
})

test('the metrics of the process are in base units', async () => {
  const metrics = createMetrics({ service: 'test' })
  const read = await samples(metrics)
  const of = (name: string) => read.get(`keycast_test_${name}`) ?? Number.NaN
  const used = process.cpuUsage()
  expect(of('process_cpu_seconds_total{mode="user"}')).toBeGreaterThan(0)
  expect(of('process_cpu_seconds_total{mode="user"}')).toBeLessThanOrEqual(used.user / 1e6)
  expect(of('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
  expect(of('memory_available_bytes')).toBeGreaterThan(1_000_000)
  expect(of('v8_heap_used_bytes')).toBeLessThan(of('v8_heap_limit_bytes'))
  expect(of('v8_external_memory_bytes')).toBeGreaterThan(0)
  expect(of('process_start_time_seconds')).toBeLessThan(Date.now() / 1_000)
  expect(of('event_loop_active_seconds_total') + of('event_loop_idle_seconds_total')).toBeGreaterThan(0)
})

test('counters read from the process do not add up over scrapes', async () => {
  const metrics = createMetrics({ service: 'test' })
  for (let scrape = 0; scrape < 20; scrape += 1) await samples(metrics)
  const total = (await samples(metrics)).get('keycast_test_process_cpu_seconds_total{mode="user"}')
  expect(total).toBeLessThanOrEqual(process.cpuUsage().user / 1e6)
})
