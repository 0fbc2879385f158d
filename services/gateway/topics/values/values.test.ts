import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createTestGateway } from '../../test-support.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc')

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

test('who asks later that the backend has nothing is told the rest of the wait', async () => {
  const { gateway, backbone, pass } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  backbone.failed('tick:1', 'not_found', { maxAgeMs: 3_000 })
  await pass(200)
  expect(gateway.values.fresh('tick:1')).toMatchObject({ problem: { code: 'not_found', retryAfterMs: 300 } })
})

test('the fetcher is told of a value, and of its absence, also after a failure', async () => {
  const { backbone, connect, pass } = createTestGateway()
  const client = await connect()
  await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  expect(backbone.held('tick:1')).toBeUndefined()
  const version = backbone.value('tick:1', '1')
  expect(backbone.held('tick:1')).toMatchObject({ version, ageMs: 0 })
  await pass(100)
  backbone.failed('tick:1', 'not_found', { ageMs: 20 })
  expect(backbone.held('tick:1')).toEqual({ version: undefined, ageMs: 20 })
  // It says nothing of what there is.
  backbone.failed('tick:1', 'backend_error')
  await pass(50)
  expect(backbone.held('tick:1')).toEqual({ version: undefined, ageMs: 70 })
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
    lastFailure: { code: 'backend_error', message: 'it was backend_error', retryAfterMs: 500, agoMs: 500 },
  })
  expect(gateway.values.describe('tick:2')).toMatchObject({ watched: false, value: undefined, lastFailure: undefined })
})

test('what had to leave the cache is garbage, however many keys come and go', async () => {
  const { gateway, backbone, turn } = createTestGateway({ settings: { cacheBytesMax: 100_000 } })
  const refs: WeakRef<object>[] = []
  for (let n = 0; n < 2_000; n++) {
    void gateway.singleFlight.want(`tick:${n}`)
    backbone.value(`tick:${n}`, '1')
    refs.push(new WeakRef(gateway.values.fresh(`tick:${n}`)?.value as object))
    if (n % 100 === 0) await turn()
  }
  await turn()
  collectGarbage()
  expect(refs.filter(ref => ref.deref() !== undefined).length).toBeLessThan(200)
})
