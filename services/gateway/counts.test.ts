import { errorCodes } from '@keycast/protocol'
import { createMetrics } from '@keycast/service/metrics'
import { countOne, createCounts } from './counts.ts'
import { createTestGateway } from './test-support.ts'

test('what is counted by one of few labels starts at zero, and a label that nobody foresaw counts too', () => {
  const { closed } = createCounts()
  expect(new Set(Object.values(closed))).toEqual(new Set([0]))
  countOne(closed, 'slow')
  countOne(closed, 'slow')
  countOne(closed, 'a new reason')
  expect(closed).toMatchObject({ slow: 2, client: 0, 'a new reason': 1 })
})

test('every message that says what is wrong is counted by its code, on each of the ways it can take', async () => {
  const { registry, ...metrics } = createMetrics({ service: 'gateway' })
  const { backbone, connect, pass } = createTestGateway({ metrics })
  const counted = async () => {
    const lines = (await registry.metrics()).matchAll(/^keycast_gateway_errors_total\{code="(\w+)"\} (\d+)$/gm)
    return Object.fromEntries([...lines].map(([, code, count]) => [code, Number(count)]))
  }
  const nothing = Object.fromEntries(Object.keys(errorCodes).map(code => [code, 0]))
  expect(await counted()).toEqual(nothing)

  const client = await connect()
  const told = await client.ask('no JSON') // a message that cannot be read
  told.push(...(await client.ask({ type: 'get', key: 'nowhere:1' }))) // a request that fails
  await client.ask({ type: 'subscribe', keys: ['tick:1', 'tick:2', 'tick:3'] })
  backbone.failed('tick:1', 'backend_timeout') // a key that has nothing
  backbone.failed('tick:2', 'backend_refused', { retryAfterMs: undefined }) // a subscription that ends
  backbone.value('tick:3', '3')
  await pass(3_000)
  backbone.failed('tick:3', 'backend_error') // a value that is old
  told.push(...(await client.received()))

  const errors = told.filter(({ type }) => type === 'error' || type === 'stale')
  expect(errors.map(({ type, code }) => `${type} ${code}`).sort()).toEqual([
    'error backend_refused',
    'error backend_timeout',
    'error bad_message',
    'error unknown_namespace',
    'stale backend_error',
  ])
  expect(await counted()).toEqual({ ...nothing, ...Object.fromEntries(errors.map(({ code }) => [code, 1])) })
})

test('each viewer of a change counts as long as the change took to be written to it; later subscribers do not', async () => {
  const { registry, ...metrics } = createMetrics({ service: 'gateway' })
  const { backbone, connect, pass } = createTestGateway({ metrics })
  const measured = async (name: string) => {
    const text = await registry.metrics()
    const read = (end: string) => Number(new RegExp(`^keycast_gateway_${name}_${end} (\\S+)$`, 'm').exec(text)?.[1])
    return { count: read('count'), seconds: read('sum') }
  }
  const [prompt, slow] = [await connect(), await connect()]
  for (const client of [prompt, slow]) await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  backbone.value('tick:1', '"first"')
  for (const client of [prompt, slow]) await client.received()
  expect(await measured('delivery_seconds')).toEqual({ count: 0, seconds: 0 }) // the key they waited for did not change

  slow.connection.stuck = true
  backbone.value('tick:1', JSON.stringify('x'.repeat(20_000)))
  await pass(0)
  backbone.value('tick:1', '"last"')
  await pass(0)
  await pass(3_000)
  expect(await measured('delivery_seconds')).toEqual({ count: 3, seconds: 0 })

  slow.connection.drain()
  await pass(0)
  expect(await measured('delivery_seconds')).toEqual({ count: 4, seconds: 3 })
  expect(await measured('stall_seconds')).toEqual({ count: 1, seconds: 3 })

  const late = await connect()
  await late.ask({ type: 'subscribe', keys: ['tick:1'] })
  expect(await measured('delivery_seconds')).toEqual({ count: 4, seconds: 3 })
})
