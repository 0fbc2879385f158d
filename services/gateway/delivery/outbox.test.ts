import { createTestGateway } from '../test-support.ts'

const subscribe = (...keys: unknown[]) => ({ type: 'subscribe', keys })
const padded = (n: number) => JSON.stringify({ n, pad: 'x'.repeat(20_000) })

/** A client that watches keys and does not read. */
async function stuck(options?: Parameters<typeof createTestGateway>[0]) {
  const bench = createTestGateway(options)
  const client = await bench.connect()
  await client.ask(subscribe('tick:1', 'tick:2'))
  client.connection.stuck = true
  bench.backbone.value('tick:1', padded(1))
  await bench.turn()
  expect(client.connection.read()).toMatchObject([{ data: { n: 1 } }])
  return { ...bench, client }
}

test('all that a turn brings leaves in one write, answers before values', async () => {
  const { backbone, connect, turn } = createTestGateway()
  const client = await connect()
  client.send(subscribe('tick:1'))
  client.send({ type: 'ping', id: 1 })
  backbone.value('tick:1', '1')
  await turn()
  expect(client.connection.writes).toHaveLength(1)
  expect(client.connection.read()).toMatchObject([{ type: 'subscribed' }, { type: 'pong' }, { type: 'value' }])
})

test('of several versions in one turn only the last is sent', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  for (let n = 0; n < 10; n++) backbone.value('tick:1', `${n}`)
  expect(await client.received()).toMatchObject([{ data: 9 }])
})

test('a client that does not read is sent nothing more, and the latest of each key once it reads', async () => {
  const { backbone, client } = await stuck()
  for (let n = 2; n < 100; n++) {
    backbone.value('tick:1', padded(n))
    backbone.value('tick:2', padded(-n))
    expect(await client.received()).toEqual([])
  }
  expect(client.connection.session?.due).toHaveLength(2)
  expect(client.connection.session?.pieces).toHaveLength(0)

  client.connection.drain()
  expect(await client.received()).toMatchObject([{ data: { n: 99 } }, { data: { n: -99 } }])
})

test('a client that does not read is sent the problem there is, not those there were', async () => {
  const { backbone, client, pass } = await stuck()
  await pass(3_000)
  backbone.failed('tick:1', 'backend_error')
  backbone.failed('tick:2', 'backend_error')
  await pass(1_000)
  backbone.value('tick:2', '5')
  client.connection.drain()
  expect(await client.received()).toMatchObject([
    { type: 'stale', key: 'tick:1', sinceMs: 4_000 },
    { type: 'value', key: 'tick:2', data: 5 },
  ])
})

test('a problem that is over before a slow client could be sent it ends in current', async () => {
  const { backbone, client, pass } = await stuck()
  await pass(3_000)
  backbone.failed('tick:1', 'backend_error')
  backbone.value('tick:1', padded(1))
  client.connection.drain()
  expect(await client.received()).toMatchObject([{ type: 'current', key: 'tick:1' }])
})

test('unsubscribed while it did not read, a client is not sent the key when it does', async () => {
  const { backbone, client } = await stuck()
  backbone.value('tick:1', '2')
  backbone.value('tick:2', '2')
  client.send({ type: 'unsubscribe', id: 1, keys: ['tick:1'] })
  client.connection.drain()
  expect(await client.received()).toMatchObject([{ type: 'ok' }, { type: 'value', key: 'tick:2' }])
})

test('subscribing and unsubscribing without reading piles nothing up', async () => {
  const { backbone, client } = await stuck({ settings: { requestsPerSecondMax: 1e6 } })
  backbone.value('tick:2', '2')
  for (let n = 0; n < 500; n++) {
    client.send({ type: 'unsubscribe', keys: ['tick:1'] })
    client.send(subscribe('tick:1'))
    backbone.value('tick:1', `${n}`)
  }
  expect(client.connection.session?.due.length).toBeLessThan(5)
  client.connection.drain()
  expect((await client.received()).filter(({ type }) => type === 'value')).toMatchObject([
    { key: 'tick:2' },
    { key: 'tick:1', data: 499 },
  ])
})

test('gets of a client that does not read wait without their values, 64 of them, and are answered when it reads', async () => {
  const { backbone, client } = await stuck()
  for (let id = 0; id < 70; id++) client.send({ type: 'get', id, key: 'tick:1' })
  expect(client.connection.session?.deferredGets).toHaveLength(64)
  backbone.value('tick:1', padded(2))

  client.connection.drain()

  const answers = await client.received()
  expect(answers.filter(({ code }) => code === 'too_many_waiting').map(({ id }) => id)).toEqual([
    64, 65, 66, 67, 68, 69,
  ])
  const values = answers.filter(({ type, id }) => type === 'value' && id !== undefined)
  expect(values.map(({ id }) => id)).toEqual(Array.from({ length: 64 }, (_, id) => id))
  expect(values.every(({ data }) => data.n === 2)).toBe(true)
})

test('a client that reads slower than its keys change is answered its gets, and sent changes beside them', async () => {
  const { backbone, client, turn } = await stuck()
  let n = 1
  const seen = { answers: [] as number[], changes: 0 }
  // It reads all there is in its socket, and by then both keys have changed again.
  const slowly = async () => {
    for (const key of ['tick:1', 'tick:2']) backbone.value(key, JSON.stringify({ n: ++n, pad: 'x'.repeat(300_000) }))
    client.connection.drain()
    client.connection.stuck = true
    await turn()
    for (const { type, id } of client.connection.read()) {
      if (type === 'value' && id !== undefined) seen.answers.push(id)
      else if (type === 'value') seen.changes++
    }
  }
  for (let id = 0; id < 20; id++) client.send({ type: 'get', id, key: 'tick:1' })
  for (let round = 0; round < 10; round++) await slowly()
  expect(seen.changes).toBeGreaterThan(5)
  for (let round = 0; round < 10; round++) await slowly()
  expect(seen.answers).toEqual(Array.from({ length: 20 }, (_, id) => id))
})

test('a get whose answer comes when its client has stopped reading waits as well', async () => {
  const { backbone, client } = await stuck()
  client.connection.drain()
  client.send({ type: 'get', id: 1, key: 'tick:9' })
  client.connection.stuck = true
  backbone.value('tick:1', padded(2))
  await client.received()
  backbone.value('tick:9', '9')
  expect(await client.received()).toEqual([])
  client.connection.drain()
  expect(await client.received()).toMatchObject([{ type: 'value', id: 1, data: 9 }])
})

test('a get that waited is answered from memory, however old the value is by then, without asking again', async () => {
  const { backbone, client, pass } = await stuck()
  client.send({ type: 'get', id: 1, key: 'tick:1' })
  client.connection.drain()
  await client.received()
  client.send({ type: 'get', id: 2, key: 'tick:9' })
  client.connection.stuck = true
  backbone.value('tick:1', padded(2))
  await client.received()
  backbone.value('tick:9', '9', { ageMs: 900, maxAgeMs: 0 })
  await client.received()
  client.send({ type: 'get', id: 3, key: 'tick:1' })
  await pass(20_000)
  backbone.calls.length = 0

  client.connection.drain()

  const answers = (await client.received()).filter(({ id }) => id !== undefined)
  expect(answers.map(({ id, type }) => [id, type])).toEqual([
    [2, 'value'],
    [3, 'value'],
  ])
  expect(backbone.calls).toEqual([])
})

test('ten thousand gets sent at once by a client that never reads keep little in memory', async () => {
  const { client, turn } = await stuck({ settings: { requestsPerSecondMax: 1e6 } })
  for (let id = 0; id < 10_000; id++) client.send({ type: 'get', id, key: 'tick:1' })
  expect(client.connection.session).toMatchObject({ pieces: [], pieceBytes: 0, due: [], deferredGets: [] })
  await turn()
  expect(client.connection.closed).toEqual({ code: 4008, reason: expect.any(String) })
  expect(client.connection.session).toMatchObject({ pieces: [], due: [], deferredGets: [], ended: true })
})

test('a client that reads is answered all it asks at once', async () => {
  const { backbone, connect } = createTestGateway({ settings: { requestsPerSecondMax: 1e6 } })
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  backbone.value('tick:1', padded(1))
  await client.received()
  for (let id = 0; id < 1_000; id++) client.send({ type: 'get', id, key: 'tick:1' })
  expect(await client.received()).toHaveLength(1_000)
})

test('a session that is due a lot is written to in batches, between which others get their turn', async () => {
  const { backbone, connect, turn } = createTestGateway()
  const keys = Array.from({ length: 100 }, (_, n) => `tick:${n}`)
  const [greedy, modest] = [await connect(), await connect()]
  await greedy.ask(subscribe(...keys))
  await modest.ask(subscribe('tick:99'))
  const order: string[] = []
  greedy.connection._socket.write = () => order.push('greedy') > 0
  modest.connection._socket.write = () => order.push('modest') > 0

  for (const key of keys) backbone.value(key, padded(1))
  await turn()

  expect(order.indexOf('modest')).toBe(14) // the first 20 KB value that passes 256 KiB is the 14th
  expect(order).toHaveLength(101)
})

test('a client that stops reading between two batches is due the others', async () => {
  const { backbone, connect } = createTestGateway()
  const keys = Array.from({ length: 100 }, (_, n) => `tick:${n}`)
  const client = await connect()
  await client.ask(subscribe(...keys))
  client.connection.stuck = true
  for (const key of keys) backbone.value(key, padded(1))
  const first = await client.received()
  client.connection.drain()
  await client.received()
  expect(first).toHaveLength(14)
})

test('a client that reads nothing for too long is closed with 4008', async () => {
  const { client, pass, connect } = await stuck()
  const healthy = await connect()
  await pass(29_999)
  expect(client.connection.closed).toBeUndefined()
  await pass(1)
  expect(client.connection.closed?.code).toBe(4008)
  expect(healthy.connection.closed).toBeUndefined()
})

test('a client that reads in time is not closed', async () => {
  const { backbone, client, pass } = await stuck()
  await pass(20_000)
  client.connection.drain()
  client.connection.stuck = true
  backbone.value('tick:1', padded(2))
  await client.received()
  await pass(20_000)
  expect(client.connection.closed).toBeUndefined()
})

test('a client that asks and never reads the answers is closed with 4008 when they are too many', async () => {
  const { client, turn } = await stuck({ settings: { unsentBytesMax: 65_536, requestsPerSecondMax: 1e6 } })
  for (let n = 0; n < 3_000; n++) client.send({ type: 'ping', id: n })
  await turn()
  expect(client.connection.closed?.code).toBe(4008)
})

test('a client that reads again after it was cut is written nothing more, for some of it is missing', async () => {
  const { backbone, client } = await stuck({ settings: { unsentBytesMax: 4_096 } })
  for (let id = 0; id < 30; id++) client.send({ type: 'ping', id })
  expect(client.connection.session).toMatchObject({ closing: 'slow', ended: false })
  client.connection.drain()
  backbone.value('tick:1', '2')
  expect(await client.received()).toEqual([])
  expect(client.connection.closed?.code).toBe(4008)
})

test('a session that stalls while it is closing ends in a turn of its own', async () => {
  const { connect, backbone } = createTestGateway()
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  backbone.value('tick:1', padded(1))
  client.send({ type: 'get', id: 1, key: 'tick:1' })
  client.connection.emit('message', Buffer.from('x'), true)
  client.connection.stuck = true
  expect(await client.received()).toMatchObject([{ type: 'value' }, { type: 'value' }])
  expect(client.connection.closed?.code).toBe(1003)
})

test('a close follows what was queued before it', async () => {
  const { connect } = createTestGateway()
  const client = await connect()
  client.send({ type: 'ping' })
  client.connection.emit('message', Buffer.from('x'), true)
  expect(client.connection.closed).toBeUndefined()
  expect(await client.received()).toMatchObject([{ type: 'pong' }])
  expect(client.connection.closed?.code).toBe(1003)
})

test('once a close is under way nothing is written after it', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  client.connection.readyState = 2
  backbone.value('tick:1', '1')
  client.send({ type: 'ping' })
  expect(await client.received()).toEqual([])
})

test('answers to empty pings are charged what they cost, not the two bytes they are', async () => {
  const { client, turn } = await stuck({ settings: { unsentBytesMax: 65_536, requestsPerSecondMax: 1e6 } })
  for (let n = 0; n < 500; n++) client.connection.emit('ping', Buffer.alloc(0))
  await turn()
  expect(client.connection.closed).toBeUndefined()
  for (let n = 0; n < 20; n++) client.connection.emit('ping', Buffer.alloc(0))
  await turn()
  expect(client.connection.closed?.code).toBe(4008)
})

test('a text is charged its bytes, not its characters', async () => {
  const { client } = await stuck()
  const before = client.connection.session?.pieceBytes ?? 0
  client.send({ type: 'ping', id: '€'.repeat(100) })
  expect((client.connection.session?.pieceBytes ?? 0) - before).toBeGreaterThan(300)
})
