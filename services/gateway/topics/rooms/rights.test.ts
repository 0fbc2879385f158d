// Rooms that a client may read from now on, and no more: what was before, and who is there, are rights of their own where
// keycast.yaml names them.
import { createMemoryRooms } from '@keycast/backbone/memory'
import { authorize } from '../../access/backend/test-backend.ts'
import { readRule } from '../../access/rule.ts'
import { authenticate, issuers, sign } from '../../access/test-tokens.ts'
import { createTestGateway } from '../../test-support.ts'

const startAtMs = 1_800_000_000_000
const key = 'room:1'
const nothing = readRule({}, { user: false, strict: true }).rule

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function setUp() {
  const journal = createMemoryRooms({ at: () => startAtMs })
  const started = createTestGateway({
    startAtMs,
    rooms: { room: { members: 'named' }, asked: { authorize } },
    policy: { tokens: issuers, anonymous: nothing, everyone: nothing, byRead: [] },
    journal,
  })
  await started.gateway.start()
  stops.push(started.gateway.stop)
  function append(text: string) {
    const data = Buffer.from(JSON.stringify(text))
    for (const room of [key, 'asked:1']) journal.append({ room, messageId: undefined, from: 'bob', data })
  }
  const auth = async (client: any, verbs: string[]) => {
    const keys = Object.fromEntries(verbs.map(verb => [verb, [key, 'asked:1']]))
    return authenticate(client, await sign({ nowMs: startAtMs, keys }), started.turn)
  }
  const clientWith = async (...verbs: string[]) => {
    const client = await started.connect()
    await auth(client, verbs)
    return client
  }
  append('before')
  return { ...started, append, auth, clientWith }
}

test('without history a client is told what comes from now on, and nothing of before', async () => {
  const { clientWith, append } = await setUp()
  const client = await clientWith('read', 'members')
  expect(await client.ask({ type: 'history', id: 1, key })).toMatchObject([{ id: 1, code: 'forbidden' }])
  expect(await client.ask({ type: 'subscribe', id: 2, keys: [{ key, last: 5, presence: true }] })).toMatchObject([
    { type: 'subscribed', keys: [{ key, seq: 1, recovered: false, count: 0 }] },
    { type: 'members', key },
  ])
  append('after')
  const [message] = await client.received()
  expect(message).toMatchObject({ type: 'message', seq: 2 })
  const { epoch } = message
  const resumed = await client.ask({
    type: 'subscribe',
    id: 3,
    keys: [{ key, after: { epoch: epoch ?? 'E1', seq: 0 } }],
  })
  expect(resumed).toMatchObject([{ type: 'subscribed', keys: [{ recovered: false, count: 0 }] }])
})

test('with it the history is read, by a request and as a stream begins', async () => {
  const { clientWith } = await setUp()
  const client = await clientWith('read', 'history')
  expect(await client.ask({ type: 'history', id: 1, key })).toMatchObject([{ type: 'history', newest: 1 }])
  expect(await client.ask({ type: 'subscribe', id: 2, keys: [{ key, last: 5 }] })).toMatchObject([
    { type: 'subscribed', keys: [{ count: 1 }] },
    { type: 'message', data: 'before' },
  ])
})

test('without members a client is not told who is there, and its subscription stands', async () => {
  const { clientWith, append } = await setUp()
  const client = await clientWith('read', 'history')
  expect(await client.ask({ type: 'subscribe', id: 1, keys: [{ key, presence: true }] })).toMatchObject([
    { type: 'subscribed', id: 1 },
    { type: 'error', id: 1, key, code: 'forbidden', subscribed: true },
  ])
  const ann = await clientWith('join')
  expect(await ann.ask({ type: 'join', id: 1, key, name: 'Ann' })).toMatchObject([{ type: 'joined' }])
  expect(await client.received()).toEqual([])
  append('after')
  expect(await client.received()).toMatchObject([{ type: 'message' }])
})

test('a renewed token without members ends what its session is told of them, and the messages go on', async () => {
  const { clientWith, auth, append } = await setUp()
  const client = await clientWith('read', 'members')
  await client.ask({ type: 'subscribe', id: 1, keys: [{ key, presence: true }] })
  const told = [...(await auth(client, ['read'])), ...(await client.received())]
  expect(told).toMatchObject([{ type: 'error', key, code: 'forbidden', subscribed: true }])
  const ann = await clientWith('join')
  await ann.ask({ type: 'join', id: 1, key, name: 'Ann' })
  append('after')
  expect(await client.received()).toMatchObject([{ type: 'message' }])
})

test.each(['the journal', 'the backend that decides'])(
  'the right to the history that a client has no more when %s answers shows it nothing of before',
  async which => {
    const { clientWith, auth, append, journal, backbone, turn } = await setUp()
    const client = await clientWith('read', 'history')
    const room = which === 'the journal' ? key : 'asked:1'
    if (which === 'the journal') journal.setAway(true)
    await client.ask({ type: 'subscribe', id: 1, keys: [{ key: room, last: 5 }] })
    await auth(client, ['read'])
    journal.setAway(false)
    for (const { resolve } of backbone.questions) resolve({ verdict: 'admitted', ageMs: 0, message: '' })
    await turn()
    append('after')
    expect((await client.received()).filter(({ type }) => type !== 'error')).toMatchObject([
      { type: 'subscribed', keys: [{ recovered: false, count: 0 }] },
      { type: 'message', data: 'after' },
    ])
  },
)
