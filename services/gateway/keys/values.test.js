import { createTestGateway } from '../test-support.js'

test('fresh gives the cached value with its age, until it is too old', async () => {
  const { gateway, backbone, pass } = createTestGateway()
  expect(gateway.values.fresh('tick:1')).toBeUndefined()
  void gateway.singleFlight.want('tick:1')
  const version = backbone.value('tick:1', '1', { ageMs: 100, maxAgeMs: 500 })

  expect(gateway.values.fresh('tick:1')).toMatchObject({ value: { version }, ageMs: 100, maxAgeMs: 500, store: true })
  await pass(400)
  expect(gateway.values.fresh('tick:1')).toMatchObject({ ageMs: 500 })
  await pass(1)
  expect(gateway.values.fresh('tick:1')).toBeUndefined()
})

test('want gives the value, or the problem, and never rejects', async () => {
  const { gateway, backbone } = createTestGateway()
  const wanted = gateway.singleFlight.want('tick:1')
  backbone.value('tick:1', '1')
  expect(await wanted).toMatchObject({ value: { contentType: 'application/json' }, ageMs: 0 })

  const failing = gateway.singleFlight.want('tick:2')
  backbone.failed('tick:2', 'backend_error', { retryAfterMs: 499.2 })
  expect(await failing).toMatchObject({ problem: { code: 'backend_error', retryAfterMs: 500 } })
})

test('the answer to a watch answers a get only where it is young enough', async () => {
  const { gateway, backbone } = createTestGateway()
  /** @type {string[]} */
  const settled = []
  const old = gateway.singleFlight.want('tick:1').then(() => settled.push('old'))
  const young = gateway.singleFlight.want('tick:2').then(() => settled.push('young'))

  backbone.value('tick:1', '1', { ageMs: 501, maxAgeMs: 500 }, false)
  backbone.value('tick:2', '1', { ageMs: 500, maxAgeMs: 500 }, false)
  await young
  expect(settled).toEqual(['young'])

  backbone.value('tick:1', '2')
  await old
})

test('want waits as long as its deadline', async () => {
  const { gateway, backbone, pass } = createTestGateway()
  const wanted = gateway.singleFlight.want('tick:1', { deadlineMs: 500 })
  await pass(750)
  expect(await wanted).toMatchObject({ problem: { code: 'fetcher_timeout' } })
  expect(backbone.calls).toEqual(['fetch tick:1', 'cancel tick:1'])
})

test('an answer for a key that is no longer wanted is dropped', async () => {
  const { gateway, backbone, pass } = createTestGateway()
  void gateway.singleFlight.want('tick:1', { deadlineMs: 500 })
  await pass(750)
  backbone.value('tick:1', '1')
  expect(gateway.values.describe('tick:1').value).toBeUndefined()
})

test('a value that comes again with the same version keeps its frames', () => {
  const { gateway, backbone } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  backbone.value('tick:1', '1')
  const value = gateway.values.fresh('tick:1')?.value
  backbone.value('tick:1', '1')
  expect(value).toBeDefined()
  expect(gateway.values.fresh('tick:1')?.value).toBe(value)
})

test('word of a version that was dropped since makes the gateway ask for its bytes', () => {
  const { gateway, backbone } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  backbone.current('tick:1', 'gone')
  expect(backbone.calls).toEqual(['fetch tick:1', 'fetch tick:1'])
  backbone.value('tick:1', '1')
  backbone.current('tick:1', 'gone')
  expect(backbone.calls).toHaveLength(2)
})

test('maxAge and store are those of the latest answer', () => {
  const { gateway, backbone } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  const version = backbone.value('tick:1', '1')
  void gateway.singleFlight.want('tick:1')
  backbone.current('tick:1', version, { maxAgeMs: 10, ageMs: 5 })
  expect(gateway.values.fresh('tick:1')).toMatchObject({ maxAgeMs: 10, ageMs: 0 })
})

test('describe says why a key is as it is', async () => {
  const { gateway, backbone, connect, pass } = createTestGateway()
  const client = await connect()
  await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  const version = backbone.value('tick:1', '1')
  await pass(3_000)
  backbone.failed('tick:1', 'backend_error')
  await pass(500)

  expect(gateway.values.describe('tick:1')).toEqual({
    key: 'tick:1',
    owner: { node: '127.0.0.1:7001:7002', alive: true },
    watched: true,
    subscribers: 1,
    waiters: 0,
    stale: true,
    value: { version, contentType: 'application/json', bytes: 1, ageMs: 3_500, maxAgeMs: 1_000, store: true },
    problem: { code: 'backend_error', message: 'it was backend_error', retryAfterMs: 500, agoMs: 500 },
  })
  expect(gateway.values.describe('tick:2')).toMatchObject({ watched: false, value: undefined, problem: undefined })
})
