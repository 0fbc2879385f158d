import { createTestGateway } from '../test-support.ts'

test('messages that break the protocol are answered, and the session goes on', async () => {
  const { connect } = createTestGateway()
  const client = await connect()
  expect(await client.ask('{')).toMatchObject([{ type: 'error', code: 'bad_message' }])
  expect(await client.ask({ type: 'steal', id: 3 })).toMatchObject([{ type: 'error', id: 3, code: 'unknown_type' }])
  expect(await client.ask({ type: 'ping' })).toMatchObject([{ type: 'pong' }])
})

test('too many of them end it', async () => {
  const { connect } = createTestGateway({ settings: { requestsPerSecondMax: 100 } })
  const client = await connect()
  let sent = 0
  while (!client.connection.closed && sent < 1_000) {
    client.send('{')
    sent++
  }
  expect(client.connection.closed?.code).toBe(4007)
  expect(sent).toBeLessThan(250)
})

test('a binary message closes the session: the protocol is text', async () => {
  const { connect, turn } = createTestGateway()
  const client = await connect()
  client.connection.emit('message', Buffer.from('{"type":"ping"}'), true)
  client.send({ type: 'ping' })
  await turn()
  expect(client.connection.closed?.code).toBe(1003)
  expect(client.connection.read()).toEqual([])
})

test('over the limit requests are refused with their id and the time to wait', async () => {
  const { connect, pass } = createTestGateway({ settings: { requestsPerSecondMax: 10 } })
  const client = await connect()
  for (let id = 0; id < 12; id++) client.send({ type: 'ping', id })
  const answers = await client.received()
  expect(answers.filter(({ type }) => type === 'pong')).toHaveLength(10)
  expect(answers.slice(10)).toMatchObject([
    { type: 'error', id: 10, code: 'rate_limited', retryAfterMs: 200 },
    { type: 'error', id: 11, code: 'rate_limited', retryAfterMs: 300 },
  ])
  await pass(300)
  expect(await client.ask({ type: 'ping' })).toMatchObject([{ type: 'pong' }])
})

test('a flood ends the session, no longer read, with a bounded number of answers', async () => {
  const { connect, turn } = createTestGateway({ settings: { requestsPerSecondMax: 10 } })
  const client = await connect()
  for (let id = 0; id < 10_000; id++) client.send({ type: 'ping', id })
  await turn()
  expect(client.connection.closed?.code).toBe(4007)
  expect(client.connection.paused).toBe(true)
  expect(client.connection.read().length).toBeLessThan(40)
})

test('a refused message is looked at for its id, whatever it is and however long', async () => {
  const { connect } = createTestGateway({ settings: { requestsPerSecondMax: 10 } })
  const client = await connect()
  for (let n = 0; n < 10; n++) client.send({ type: 'ping' })
  client.send('{')
  client.send({ type: 'steal', id: 'x' })
  client.send({ type: 'ping', id: 'long', pad: 'x'.repeat(2_000) })
  const refused = (await client.received()).slice(10)
  expect(refused.map(({ id, code }) => [id, code])).toEqual([
    [undefined, 'rate_limited'],
    ['x', 'rate_limited'],
    ['long', 'rate_limited'],
  ])
})

test('WebSocket pings are answered like requests, and limited like them', async () => {
  const { connect, turn } = createTestGateway({ settings: { requestsPerSecondMax: 10 } })
  const client = await connect()
  for (let n = 0; n < 15; n++) client.connection.emit('ping', Buffer.from('abc'))
  expect(await client.received()).toEqual(Array(10).fill('pong'))
  for (let n = 0; n < 100; n++) client.connection.emit('ping', Buffer.from('abc'))
  await turn()
  expect(client.connection.closed?.code).toBe(4007)
})

test('pongs that nobody asked for are limited like requests', async () => {
  const { connect, turn } = createTestGateway({ settings: { requestsPerSecondMax: 10 } })
  const client = await connect()
  for (let n = 0; n < 10; n++) client.connection.emit('pong', Buffer.alloc(0))
  await turn()
  expect(client.connection.closed).toBeUndefined()
  for (let n = 0; n < 30; n++) client.connection.emit('pong', Buffer.alloc(0))
  await turn()
  expect(client.connection.closed?.code).toBe(4007)
})

test('a message that arrives after the end of a session is not read', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  client.connection.emit('close', 1001, Buffer.alloc(0))
  client.send({ type: 'subscribe', keys: ['tick:1'] })
  expect(backbone.calls).toEqual([])
})
