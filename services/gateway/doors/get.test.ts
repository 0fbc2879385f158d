import { createTestGateway } from '../test-support.ts'
import { ENTRY_BYTES } from '../topics/values/cache.ts'

const get = (rest: object) => ({ type: 'get', id: 7, key: 'tick:1', ...rest })

test('a value that is cached and fresh is sent from memory, with the id', async () => {
  const { gateway, backbone, connect, pass } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  const version = backbone.value('tick:1', '{"n":1}')
  await pass(1_000)

  const client = await connect()
  expect(await client.ask(get({}))).toEqual([{ type: 'value', id: 7, key: 'tick:1', version, data: { n: 1 } }])
  expect(await client.ask({ type: 'get', key: 'tick:1' })).toEqual([
    { type: 'value', key: 'tick:1', version, data: { n: 1 } },
  ])
  expect(backbone.calls).toEqual(['get tick:1'])
})

test('a version that still holds is answered with current', async () => {
  const { gateway, backbone, connect } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  const version = backbone.value('tick:1', '1')
  const client = await connect()

  expect(await client.ask(get({ version }))).toEqual([{ type: 'current', id: 7, key: 'tick:1', version }])
  expect(await client.ask(get({ version: 'other' }))).toMatchObject([{ type: 'value', id: 7 }])
})

test('all gets of a cold key share one request to the fetcher, and each is answered with its id', async () => {
  const { backbone, connect } = createTestGateway()
  const clients = await Promise.all([connect(), connect()])
  clients[0].send(get({ id: 'a' }))
  clients[0].send(get({ id: 'b' }))
  clients[1].send(get({ id: 'c' }))
  expect(backbone.calls).toEqual(['get tick:1'])

  backbone.value('tick:1', '1')

  expect(await clients[0].received()).toMatchObject([
    { id: 'a', data: 1 },
    { id: 'b', data: 1 },
  ])
  expect(await clients[1].received()).toMatchObject([{ id: 'c', data: 1 }])
})

test('an old value is asked for again, and answered when it is confirmed', async () => {
  const { gateway, backbone, connect, pass } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  const version = backbone.value('tick:1', '1')
  await pass(1_001)
  const client = await connect()

  expect(await client.ask(get({}))).toEqual([])
  backbone.current('tick:1', version)
  expect(await client.received()).toMatchObject([{ type: 'value', id: 7, data: 1 }])
})

test('failures are answered with the id, each time', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  for (let n = 0; n < 2; n++) {
    expect(await client.ask(get({ id: n }))).toEqual([])
    backbone.failed('tick:1', 'backend_error')
    expect(await client.received()).toEqual([
      {
        type: 'error',
        id: n,
        subscribed: false,
        key: 'tick:1',
        code: 'backend_error',
        message: 'it was backend_error',
        retryAfterMs: 500,
      },
    ])
  }
  expect(backbone.calls).toEqual(['get tick:1', 'get tick:1'])
})

test('that the backend has nothing is remembered for its time', async () => {
  const { backbone, connect, pass } = createTestGateway()
  const client = await connect()
  client.send(get({}))
  backbone.failed('tick:1', 'not_found', { maxAgeMs: 3_000 })
  await client.received()

  await pass(3_000)
  expect(await client.ask(get({}))).toMatchObject([{ type: 'error', code: 'not_found' }])
  await pass(1)
  expect(await client.ask(get({}))).toEqual([])
  expect(backbone.calls).toEqual(['get tick:1', 'get tick:1'])
})

test('a fetcher that does not answer is not waited for longer than timeout and 2 s', async () => {
  const { backbone, connect, pass } = createTestGateway()
  const client = await connect()
  client.send(get({}))
  await pass(3_999)
  expect(await client.received()).toEqual([])
  await pass(251)
  expect(await client.received()).toMatchObject([
    { type: 'error', id: 7, code: 'fetcher_timeout', retryAfterMs: 1_000 },
  ])
  expect(backbone.calls).toEqual(['get tick:1', 'cancelGet tick:1'])

  backbone.nodesAlive = 0
  client.send(get({}))
  await pass(4_250)
  expect(await client.received()).toMatchObject([{ code: 'fetcher_unavailable', retryAfterMs: 1_000 }])
})

test('a later get waits on when the first gives up', async () => {
  const { backbone, connect, pass } = createTestGateway()
  const client = await connect()
  client.send(get({ id: 1 }))
  await pass(3_000)
  client.send(get({ id: 2 }))
  await pass(1_250)
  expect(await client.received()).toMatchObject([{ id: 1, code: 'fetcher_timeout' }])
  expect(backbone.calls).toEqual(['get tick:1'])
  backbone.value('tick:1', '1')
  expect(await client.received()).toMatchObject([{ id: 2, type: 'value' }])
})

test('keys that cannot be are refused without asking anybody', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  expect(await client.ask(get({ key: 'tick:../x' }))).toMatchObject([{ id: 7, code: 'bad_key' }])
  expect(await client.ask(get({ key: 'nowhere:1' }))).toMatchObject([{ id: 7, code: 'unknown_namespace' }])
  expect(backbone.calls).toEqual([])
})

test('the shared body of a large value is written as it is, after a head of its own', async () => {
  const { gateway, backbone, connect } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  backbone.value('tick:1', JSON.stringify({ text: 'x'.repeat(130_000) }))
  const client = await connect()
  const written: Buffer[] = []
  client.connection._socket.write = bytes => written.push(bytes) > 0

  client.send(get({ id: 1 }))
  client.send(get({ id: 2 }))
  await client.received()

  expect(written.map(({ length }) => length > 100_000)).toEqual([false, true, false, true])
  expect(written[1].buffer).toBe(written[3].buffer)
})

test('a private value is not held once answered', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  client.send(get({}))
  backbone.value('tick:1', '1', { store: false })
  expect(await client.received()).toMatchObject([{ type: 'value' }])
  expect(backbone.held('tick:1')).toBeUndefined()
})

test('of the gets of one session 64 wait for the fetcher, and the next may once they are answered', async () => {
  const { backbone, connect } = createTestGateway()
  const [client, other] = [await connect(), await connect()]
  for (let id = 0; id < 66; id++) client.send(get({ id, key: `tick:${id}` }))
  expect(await client.received()).toMatchObject([
    { type: 'error', id: 64, key: 'tick:64', code: 'too_many_waiting' },
    { type: 'error', id: 65, key: 'tick:65', code: 'too_many_waiting' },
  ])
  expect(backbone.calls).toHaveLength(64)
  // A value in memory needs no wait, and each session's gets wait for its own client only.
  backbone.value('tick:0', '0')
  expect(await client.received()).toMatchObject([{ id: 0, data: 0 }])
  expect(await client.ask(get({ key: 'tick:0' }))).toMatchObject([{ data: 0 }])
  expect(await other.ask(get({ key: 'tick:65' }))).toEqual([])
  expect(await client.ask(get({ key: 'tick:64' }))).toEqual([])
  expect(await client.ask(get({ key: 'tick:67' }))).toMatchObject([{ code: 'too_many_waiting' }])
})

test('where watched and wanted keys take all the room there is, a get of another key is refused at once', async () => {
  const { backbone, connect } = createTestGateway({ settings: { cacheBytesMax: 10 * ENTRY_BYTES } })
  const client = await connect()
  for (let id = 0; id < 10; id++) client.send(get({ id, key: `tick:${id}` }))
  expect(await client.ask(get({ id: 10, key: 'tick:10' }))).toMatchObject([{ id: 10, code: 'capacity' }])
  expect(await client.ask(get({ id: 11, key: 'tick:1' }))).toEqual([])
  expect(backbone.calls).toHaveLength(10)
})
