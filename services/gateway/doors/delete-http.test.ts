import { noContainment, realWorld } from '@keycast/service'
import { createInternalServer } from '@keycast/service/internal-server'
import { createTestGateway } from '../test-support.ts'
import { addInternal } from './http/internal.ts'
import { closeServed, serve } from './http/test-support.ts'

afterEach(closeServed)

const headers = { authorization: 'Bearer secret' }

async function setUp() {
  const started = createTestGateway({ rooms: { room: { bytesMax: 1_000 } } })
  const { gateway } = started
  await gateway.start()
  const { app } = createInternalServer({
    host: '127.0.0.1',
    port: 0,
    metrics: {} as any,
    ready: () => undefined,
    containment: noContainment,
  })
  const audited: string[] = []
  app.addHook('onClose', () => gateway.stop())
  addInternal(app, {
    ...gateway,
    namespaces: { get: () => undefined } as any,
    apiTokens: [{ name: 'ann', scopes: ['admin'], token: 'secret' }],
    audit: line => audited.push(line),
    wallNow: Date.now,
    turn: realWorld.turn,
  })
  const call = await serve(app)
  async function publish(key: string, ...texts: [from: string, text: string][]) {
    for (const [from, data] of texts) {
      await gateway.publishes.fromBackend({ key, from, data: JSON.stringify(data) })
    }
  }
  const remove = (path: string, more: Record<string, string> = {}) =>
    call(path, { method: 'DELETE', headers: { ...headers, ...more } })
  return { ...started, publish, remove, audited }
}

test('a message is deleted, its readers are told, and those who come later find its place', async () => {
  const { publish, remove, connect, audited } = await setUp()
  await publish('room:1', ['ann', 'one'], ['bob', 'two'], ['ann', 'three'])
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: [{ key: 'room:1', last: 3 }] })
  await client.received()
  const response = await remove('/v1/rooms/room:1/messages/2')
  expect([response.status, response.json()]).toEqual([200, { messagesDeleted: 1 }])
  expect((await client.received()).at(-1)).toMatchObject({ type: 'message', seq: 4, deletes: [[2, 2]], data: null })

  const late = await connect()
  const asked = await late.ask({ type: 'subscribe', id: 1, keys: [{ key: 'room:1', last: 4 }] })
  const messages = [...asked, ...(await late.received())].filter(({ type }) => type === 'message')
  expect(messages.map(({ seq, data, deleted }: any) => [seq, data, deleted])).toEqual([
    [1, 'one', undefined],
    [2, null, true],
    [3, 'three', undefined],
    [4, null, undefined],
  ])
  expect((await remove('/v1/rooms/room:1/messages/2')).json()).toEqual({ messagesDeleted: 0 })
  expect(audited.map(line => JSON.parse(line))).toMatchObject([
    { caller: 'ann', method: 'DELETE', path: '/v1/rooms/room:1/messages/2', status: 200 },
    { caller: 'ann', method: 'DELETE', path: '/v1/rooms/room:1/messages/2', status: 200 },
  ])
})

test('a caller who names the type of a body that is empty is answered as any', async () => {
  const { publish, remove } = await setUp()
  await publish('room:1', ['ann', 'one'])
  const response = await remove('/v1/rooms/room:1', { 'content-type': 'application/json' })
  expect([response.status, response.json()]).toEqual([200, { messagesDeleted: 1 }])
})

test('all messages of a room are deleted', async () => {
  const { publish, remove } = await setUp()
  await publish('room:1', ['ann', 'one'], ['bob', 'two'])
  await publish('room:2', ['ann', 'one'])
  expect((await remove('/v1/rooms/room%3A1')).json()).toEqual({ messagesDeleted: 2 })
  expect((await remove('/v1/rooms/room:1')).json()).toEqual({ messagesDeleted: 0 })
  expect((await remove('/v1/rooms/room:2')).json()).toEqual({ messagesDeleted: 1 })
})

test("a user's messages are deleted in every room, and nobody else's", async () => {
  const { publish, remove } = await setUp()
  await publish('room:1', ['ann', 'one'], ['bob', 'two'])
  await publish('room:2', ['ann/of us', 'one'], ['ann', 'two'], ['ann', 'three'])
  expect((await remove('/v1/users/ann/messages')).json()).toEqual({ messagesDeleted: 3 })
  expect((await remove('/v1/users/ann%2Fof%20us/messages')).json()).toEqual({ messagesDeleted: 1 })
  expect((await remove('/v1/rooms/room:1/messages/2')).json()).toEqual({ messagesDeleted: 1 })
})

test('what the longest names stand for is deleted as any other', async () => {
  const { publish, remove } = await setUp()
  const key = `room:${'x'.repeat(255)}`
  const user = `${'p'.repeat(64)}${'s'.repeat(255)}`
  await publish(key, ['ann', 'one'], ['ann', 'two'])
  await publish('room:2', [user, 'one'])
  expect((await remove(`/v1/rooms/${key}/messages/1`)).json()).toEqual({ messagesDeleted: 1 })
  expect((await remove(`/v1/rooms/${key}`)).json()).toEqual({ messagesDeleted: 1 })
  expect((await remove(`/v1/users/${user}/messages`)).json()).toEqual({ messagesDeleted: 1 })
})

test.each([
  ['what is no key', '/v1/rooms/room', 400, 'bad_key'],
  ['a message that is no number', '/v1/rooms/room:1/messages/all', 400, 'bad_request'],
  ['a number that no message has', '/v1/rooms/room:1/messages/9007199254740993', 400, 'bad_request'],
  ['a room of no namespace', '/v1/rooms/other:1', 404, 'unknown_namespace'],
  ['the list of revocations', '/v1/rooms/keycast-revocations:all', 404, 'unknown_namespace'],
  ['what can be no user', '/v1/users/%00/messages', 400, 'bad_request'],
  ['a name that is too long', `/v1/rooms/room:${'x'.repeat(1_000)}`, 400, 'bad_key'],
])('%s is refused', async (_, path, status, code) => {
  const { remove } = await setUp()
  const response = await remove(path)
  expect([response.status, response.json().code]).toEqual([status, code])
})

test('while the journal is away nothing is deleted, and the caller is told when to come again', async () => {
  const { remove, journal } = await setUp()
  journal.setAway(true)
  const response = await remove('/v1/rooms/room:1')
  expect([response.status, response.headers['retry-after'], response.json().code]).toEqual([
    503,
    '1',
    'journal_unavailable',
  ])
})
