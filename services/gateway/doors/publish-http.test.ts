import { realWorld } from '@keycast/service'
import Fastify from 'fastify'
import { createTestGateway } from '../test-support.ts'
import { addInternal } from './http/internal.ts'
import { closeServed, serve } from './http/test-support.ts'

afterEach(closeServed)

const key = 'room:1'
const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' }

async function setUp() {
  const started = createTestGateway({ rooms: { room: { publish: 'server', bytesMax: 100, members: 'named' } } })
  const { gateway } = started
  await gateway.start()
  const app = Fastify()
  app.addHook('onClose', () => gateway.stop())
  addInternal(app, {
    ...gateway,
    namespaces: { get: () => undefined } as any,
    apiTokens: [{ name: 'backend', scopes: ['admin'], token: 'secret' }],
    audit() {},
    wallNow: Date.now,
    turn: realWorld.turn,
  })
  const call = await serve(app)
  const publish = (body: string | object, given = headers) =>
    call('/v1/publish', {
      method: 'POST',
      headers: given,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  return { ...started, call, publish }
}

test('a backend publishes where clients may not, for whom it likes, and its data is passed on as it is', async () => {
  const { publish, connect, journal } = await setUp()
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  const response = await publish(`{"key":"${key}","from":"ann","messageId":"a-messageId-of-mine","data":{"n": 1.0}}`)
  expect([response.status, response.json()]).toEqual([200, { key, epoch: 'E1', seq: 1, at: expect.any(Number) }])
  expect(String(Buffer.concat(client.connection.writes))).toContain('"from":"ann"')
  expect(String(Buffer.concat(client.connection.writes))).toContain('"data":{"n": 1.0}}')
  const again = await publish(`{"key":"${key}","from":"ann","messageId":"a-messageId-of-mine","data":{"n": 1.0}}`)
  expect(again.json()).toMatchObject({ seq: 1, duplicate: true })
  // Nobody's turn or share.
  expect(journal.payers).toEqual([undefined, undefined])
})

test.each([
  ['no JSON', '{', 400, 'bad_request'],
  ['no data', { key }, 400, 'bad_request'],
  ['data that is nested too deep', `{"key":"${key}","data":${'['.repeat(65)}${']'.repeat(65)}}`, 400, 'bad_request'],
  ['from that is no string', { key, data: 1, from: 7 }, 400, 'bad_request'],
  ['data over maxBytes', { key, data: 'x'.repeat(100) }, 413, 'too_large'],
  ['a key of values', { key: 'tick:1', data: 1 }, 404, 'unknown_namespace'],
  ['what is no key', { key: 'room', data: 1 }, 400, 'bad_key'],
])('%s is refused', async (_, body, status, code) => {
  const { publish } = await setUp()
  const response = await publish(body)
  expect([response.status, response.json().code]).toEqual([status, code])
})

test('a messageId that stands for other data is a conflict', async () => {
  const { publish } = await setUp()
  await publish({ key, messageId: 'a-messageId-of-mine', data: 1 })
  const response = await publish({ key, messageId: 'a-messageId-of-mine', data: 2 })
  expect([response.status, response.json().code]).toEqual([409, 'id_conflict'])
})

test('while the journal is away the answer is 503', async () => {
  const { publish, journal } = await setUp()
  journal.setAway(true)
  const response = await publish({ key, data: 1 })
  expect([response.status, response.headers['retry-after']]).toEqual([503, '1'])
})

test('without the token nothing is published', async () => {
  const { publish } = await setUp()
  expect((await publish({ key, data: 1 }, { ...headers, authorization: 'Bearer wrong' })).status).toBe(401)
})

test('an operator sees what a gateway knows of a room', async () => {
  const { call, publish, connect, journal } = await setUp()
  const ask = async () => (await call(`/v1/rooms/${key}`, { headers })).json()
  expect(await ask()).toMatchObject({ key, owner: { node: 'memory', alive: true }, watched: false })
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  await publish({ key, data: 1 })
  await client.received()
  expect(await ask()).toMatchObject({
    watched: true,
    sessionsSubscribed: 1,
    sessionsBehind: 0,
    position: { epoch: 'E1', seq: 1 },
    oldest: 1,
    tail: { messages: 1 },
    members: { count: 0, listed: [] },
  })
  await client.ask({ type: 'join', id: 2, key, name: 'Ann' })
  expect((await ask()).members).toEqual({ count: 1, listed: [{ id: expect.any(String), name: 'Ann', tabs: 1 }] })
  journal.setAway(true)
  expect((await ask()).members).toMatchObject({ code: 'journal_unavailable' })
})
