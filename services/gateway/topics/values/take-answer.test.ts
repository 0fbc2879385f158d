import { createTestGateway } from '../../test-support.ts'

test('the answer to a watch answers a get only where it is young enough', async () => {
  const { gateway, backbone } = createTestGateway()
  const settled: string[] = []
  const old = gateway.singleFlight.want('tick:1').then(() => settled.push('old'))
  const young = gateway.singleFlight.want('tick:2').then(() => settled.push('young'))

  backbone.value('tick:1', '1', { ageMs: 501, maxAgeMs: 500 }, false)
  backbone.value('tick:2', '1', { ageMs: 500, maxAgeMs: 500 }, false)
  await young
  expect(settled).toEqual(['young'])

  backbone.value('tick:1', '2')
  await old
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
  expect(backbone.calls).toEqual(['get tick:1', 'get tick:1'])
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

test('keys that were never found take their part of the cache and no more: keys of others get in', async () => {
  const { backbone, connect } = createTestGateway({ settings: { cacheBytesMax: 1024 ** 2 } })
  const [stranger, user] = [await connect(), await connect()]
  const invented = Array.from({ length: 2_000 }, (_, index) => `tick:invented-${index}`)
  for (let first = 0; first < invented.length; first += 500) {
    const keys = invented.slice(first, first + 500)
    stranger.send({ type: 'subscribe', keys })
    for (const key of keys) backbone.failed(key, 'not_found')
  }
  const errors = (await stranger.received()).filter(({ type }) => type === 'error')
  expect(errors.filter(({ code, subscribed }) => code === 'not_found' && subscribed)).toHaveLength(128)
  expect(errors.filter(({ code, subscribed }) => code === 'capacity' && !subscribed)).toHaveLength(2_000 - 128)

  await user.ask({ type: 'subscribe', keys: ['tick:1'] })
  backbone.value('tick:1', '1')
  expect(await user.received()).toMatchObject([{ type: 'value', key: 'tick:1' }])
})

test('a key that was there is not counted among those never found', async () => {
  const { backbone, connect } = createTestGateway({ settings: { cacheBytesMax: 1024 ** 2 } })
  const client = await connect()
  const keys = Array.from({ length: 200 }, (_, index) => `tick:${index}`)
  client.send({ type: 'subscribe', keys })
  for (const key of keys) backbone.value(key, '1')
  await client.received()
  for (const key of keys) backbone.failed(key, 'not_found')
  expect((await client.received()).filter(({ subscribed }) => subscribed)).toHaveLength(200)
})
