// Members of rooms through a whole gateway and a journal in memory: each rule of what a client is sent.
import { createMemoryRooms } from '@keycast/backbone/memory'
import { createRights } from '../../../access/rights.ts'
import { readRule } from '../../../access/rule.ts'
import { createTestGateway } from '../../../test-support.ts'

const key = 'room:1'
const members = 'named' as const
const names = 'unique' as const

const ruleOf = (written: object) => readRule(written, { user: false, strict: true }).rule
const everything = createRights({
  anonymous: ruleOf({ read: ['*:**'], join: ['*:**'] }),
  everyone: ruleOf({}),
}).anonymous

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function setUp(options?: Parameters<typeof createTestGateway>[0]) {
  const started = createTestGateway({ rooms: { room: { members, names }, news: {} }, ...options })
  await started.gateway.start()
  stops.push(started.gateway.stop)

  /** One that joined under its name. */
  async function joined(name: string) {
    const client = await started.connect()
    const [{ claim }] = await client.ask({ type: 'join', id: 1, key, name })
    return { ...client, claim }
  }

  /** One that is told who is there. */
  async function watching() {
    const client = await started.connect()
    const heard = await client.ask({ type: 'subscribe', id: 1, keys: [{ key, presence: true }] })
    return { ...client, heard }
  }
  return { ...started, joined, watching }
}

const named = (name: string, tabs = 1) => ({ id: expect.any(String), name, tabs })

test('who is there comes after subscribed, then every change', async () => {
  const { joined, watching } = await setUp()
  const ann = await joined('Ann')
  const client = await watching()
  expect(client.heard).toEqual([
    { type: 'subscribed', id: 1, keys: [expect.objectContaining({ key })] },
    { type: 'members', key, rev: 1, count: 1, members: [named('Ann')] },
  ])
  const bob = await joined('Bob')
  expect(await client.received()).toEqual([
    { type: 'presence', key, rev: 2, count: 2, joined: [named('Bob')], left: [] },
  ])
  expect(await bob.ask({ type: 'leave', id: 2, key })).toEqual([{ type: 'ok', id: 2 }])
  expect(await client.received()).toEqual([
    { type: 'presence', key, rev: 3, count: 1, joined: [], left: [named('Bob')] },
  ])
  expect(ann.claim).toEqual(expect.any(String))
})

test('one that comes later is told the members as they are, and all share each frame', async () => {
  const { joined, watching } = await setUp()
  const first = await watching()
  await joined('Ann')
  await first.received()
  const [second, third] = [await watching(), await watching()]
  for (const { heard } of [second, third]) {
    expect(heard[1]).toEqual({ type: 'members', key, rev: 1, count: 1, members: [named('Ann')] })
  }
  const written: unknown[][] = []
  for (const { connection } of [first, second, third]) {
    const transport = connection.asTransport
    const write = transport.write.bind(transport)
    transport.write = pieces => {
      written.push([...pieces])
      write(pieces)
    }
  }
  await joined('Bob')
  expect(written).toHaveLength(3)
  for (const pieces of written) expect(pieces[0]).toBe(written[0][0])
})

test('one that only follows the messages is told of nobody, and nothing comes after unsubscribe', async () => {
  const { connect, joined, watching } = await setUp()
  const plain = await connect()
  await plain.ask({ type: 'subscribe', id: 1, keys: [key] })
  const client = await watching()
  await joined('Ann')
  expect(await plain.received()).toEqual([])
  await client.ask({ type: 'unsubscribe', id: 2, keys: [key] })
  await joined('Bob')
  expect(await client.received()).toEqual([])
})

test('subscribing again without presence ends it, and with it sends the members anew', async () => {
  const { joined, watching } = await setUp()
  const client = await watching()
  const again = await client.ask({ type: 'subscribe', id: 2, keys: [{ key, presence: true }] })
  expect(again.map(({ type }) => type)).toEqual(['subscribed', 'members'])
  await client.ask({ type: 'subscribe', id: 3, keys: [key] })
  await joined('Ann')
  expect(await client.received()).toEqual([])
})

test('a client that reads nothing is owed no changes: it is sent the members once it reads', async () => {
  const { joined, watching } = await setUp()
  const client = await watching()
  client.connection.stuck = true
  // The socket takes some 16 KB before it is full.
  const names = Array.from({ length: 120 }, (_, n) => `${'😀'.repeat(60)}${n}`)
  for (const name of names) await joined(name)
  client.connection.drain()
  const heard = await client.received()
  const last = heard.at(-1)
  expect(last).toMatchObject({ type: 'members', rev: 120, count: 120 })
  expect(last.members.map(({ name }: any) => name)).toEqual(names)
  expect(heard.length).toBeLessThan(60)
  await joined('Ann')
  expect(await client.received()).toMatchObject([{ type: 'presence', rev: 121, count: 121 }])
})

test('one whose membership ends for want of room is told no time to come back: nobody tries again for it', async () => {
  const journal = createMemoryRooms()
  const { joined } = await setUp({ journal })
  const ann = await joined('Ann')
  journal.refuseAll(key, 'capacity')
  const [error] = await ann.received()
  expect(error).toMatchObject({ type: 'error', key, code: 'capacity' })
  expect(error).not.toHaveProperty('retryAfterMs')
})

test('where members are counted, only the number is told', async () => {
  const journal = createMemoryRooms({ isNamed: false })
  const { joined, watching } = await setUp({ journal, rooms: { room: { members: 'counted' } } })
  const client = await watching()
  expect(client.heard[1]).toEqual({ type: 'members', key, rev: 0, count: 0 })
  await joined('Ann')
  expect(await client.received()).toEqual([{ type: 'presence', key, rev: 1, count: 1 }])
})

test('where nobody is told of, presence and join are forbidden, and the subscription stands', async () => {
  const { connect } = await setUp()
  const client = await connect()
  const forbidden = { type: 'error', key: 'news:1', code: 'forbidden' }
  expect(await client.ask({ type: 'subscribe', id: 1, keys: [{ key: 'news:1', presence: true }] })).toMatchObject([
    { type: 'subscribed', id: 1 },
    { ...forbidden, id: 1, subscribed: true },
  ])
  expect(await client.ask({ type: 'join', id: 2, key: 'news:1', name: 'Ann' })).toMatchObject([
    { ...forbidden, id: 2, subscribed: true },
  ])
})

test('a join brings the name to its normal form, and gives an anonymous client a claim', async () => {
  const { connect } = await setUp()
  const client = await connect()
  const join = { type: 'join', id: 1, key, name: 'Zoe\u0308' }
  expect(await client.ask(join)).toEqual([{ type: 'joined', id: 1, key, name: 'Zo\u00eb', claim: expect.any(String) }])
})

test('a user needs no claim, and all tabs are one member', async () => {
  const { connect, watching } = await setUp()
  const client = await watching()
  const peer = { address: '127.0.0.1', isNamed: false }
  const verified = { user: 'ann', rights: { grants: everything.grants, user: 'ann' }, expiresAtMs: 1e15 } as any
  for (let tab = 1; tab <= 2; tab++) {
    const ann = await connect('', '', { peer, verified })
    expect(await ann.ask({ type: 'join', id: tab, key, name: 'Ann' })).toEqual([
      { type: 'joined', id: tab, key, name: 'Ann' },
    ])
    expect(await client.received()).toMatchObject([{ joined: [{ user: 'ann', name: 'Ann', tabs: tab }] }])
  }
})

test('a name that somebody has is refused; its owner takes it back with the claim, from a ghost of its own', async () => {
  const { connect, joined, watching } = await setUp()
  const ann = await joined('Ann')
  const client = await watching()
  const other = await connect()
  expect(await other.ask({ type: 'join', id: 1, key, name: 'Ann' })).toMatchObject([
    { type: 'error', id: 1, key, subscribed: false, code: 'name_taken' },
  ])
  ann.connection.emit('close', 1006)
  expect(await client.received()).toEqual([])
  expect(await other.ask({ type: 'join', id: 2, key, name: 'Ann' })).toMatchObject([{ code: 'name_taken' }])
  const back = await connect()
  const { claim } = ann
  expect(await back.ask({ type: 'join', id: 3, key, name: 'Ann', claim })).toEqual([
    { type: 'joined', id: 3, key, name: 'Ann', claim },
  ])
  expect(await client.received()).toEqual([])
})

test.each([1000, 1001, 1005])('a client that closes with %i leaves at once', async code => {
  const { joined, watching } = await setUp()
  const ann = await joined('Ann')
  const client = await watching()
  ann.connection.emit('close', code)
  expect(await client.received()).toMatchObject([{ type: 'presence', count: 0, left: [named('Ann')] }])
})

test.each([1006, 1011, 4000])('one that closes with %i leaves when its time is over', async code => {
  const { joined, watching, journal } = await setUp()
  const ann = await joined('Ann')
  const client = await watching()
  ann.connection.emit('close', code)
  expect(await client.received()).toEqual([])
  journal.endGhosts(key)
  expect(await client.received()).toMatchObject([{ type: 'presence', count: 0 }])
})

test('one that the gateway closes may come back', async () => {
  const { joined, watching, gateway, journal } = await setUp({ settings: { drainMs: 0 } })
  const ann = await joined('Ann')
  const client = await watching()
  await gateway.drain()
  ann.connection.emit('close', 1012)
  expect((await client.received()).map(({ type }) => type)).not.toContain('presence')
  journal.endGhosts(key)
})

test('joining again under another name changes it, and one that is taken costs nothing', async () => {
  const { joined, watching } = await setUp()
  const ann = await joined('Ann')
  await joined('Bob')
  const client = await watching()
  expect(await ann.ask({ type: 'join', id: 2, key, name: 'Annie' })).toMatchObject([{ type: 'joined', name: 'Annie' }])
  const changes = await client.received()
  expect(changes.at(-1)).toMatchObject({ count: 2, joined: [named('Annie')] })
  expect(await ann.ask({ type: 'join', id: 3, key, name: 'Bob' })).toMatchObject([{ code: 'name_taken' }])
  expect(await client.received()).toEqual([])
})

test('a second join while the first is under way is refused, and a leave takes the first back', async () => {
  const { connect, watching } = await setUp()
  const client = await watching()
  const ann = await connect()
  ann.send({ type: 'join', id: 1, key, name: 'Ann' })
  ann.send({ type: 'join', id: 2, key, name: 'Ann' })
  expect(await ann.received()).toMatchObject([
    { id: 2, code: 'too_many_waiting', retryAfterMs: 100 },
    { id: 1, type: 'joined' },
  ])
  await client.received()
  const bob = await connect()
  bob.send({ type: 'join', id: 1, key, name: 'Bob' })
  bob.send({ type: 'leave', id: 2, key })
  expect(await bob.received()).toMatchObject([
    { id: 2, type: 'ok' },
    { id: 1, code: 'bad_message' },
  ])
  expect((await client.received()).at(-1)).toMatchObject({ count: 1 })
})

test('a session that ends while it joins is no member', async () => {
  const { connect, watching, gateway } = await setUp()
  const client = await watching()
  const ann = await connect()
  ann.send({ type: 'join', id: 1, key, name: 'Ann' })
  ann.connection.emit('close', 1006)
  const heard = await client.received()
  expect(heard.at(-1)?.count ?? 0).toBe(0)
  expect(gateway.counts.joins.joined).toBe(0)
})

test('a session may join 100 rooms, however often it asks', async () => {
  const { connect, gateway } = await setUp({ settings: { requestsPerSecondMax: 20_000 } })
  const client = await connect()
  for (let n = 0; n < 10_000; n++) client.send({ type: 'join', id: n, key: `room:${n}`, name: 'Ann' })
  await client.received()
  expect(gateway.counts.joins.joined).toBe(100)
  expect(gateway.counts.joins.too_many_keys).toBe(9_900)
})

test('while the journal is away a join says when to come back', async () => {
  const { connect, journal } = await setUp()
  journal.setAway(true)
  const client = await connect()
  expect(await client.ask({ type: 'join', id: 1, key, name: 'Ann' })).toMatchObject([
    { id: 1, code: 'journal_unavailable', retryAfterMs: 1_000 },
  ])
  journal.setAway(false)
  expect(await client.ask({ type: 'join', id: 2, key, name: 'Ann' })).toMatchObject([{ type: 'joined' }])
})

test('a member whose name the journal gave to somebody else is told, and may join again', async () => {
  const { joined, journal } = await setUp()
  const ann = await joined('Ann')
  journal.refuseAll(key)
  expect(await ann.received()).toEqual([
    { type: 'error', key, subscribed: false, code: 'name_taken', message: expect.any(String) },
  ])
  expect(await ann.ask({ type: 'join', id: 2, key, name: 'Ann' })).toMatchObject([{ type: 'joined' }])
})

test.each([
  [{ key: 'room:1' }, 'bad_message'],
  [{ key: 'room:1', name: 7 }, 'bad_message'],
  [{ key: 'room:1', name: '' }, 'bad_message'],
  [{ key: 'room:1', name: 'An\u0000n' }, 'bad_message'],
  [{ key: 'room:1', name: '\u202Enn' }, 'bad_message'],
  [{ key: 'room:1', name: 'Ann ' }, 'bad_message'],
  [{ key: 'room:1', name: 'a'.repeat(65) }, 'bad_message'],
  [{ key: 'room:1', name: 'Ann', claim: 'mine' }, 'bad_message'],
  [{ name: 'Ann' }, 'bad_message'],
  [{ key: 'no key', name: 'Ann' }, 'bad_key'],
  [{ key: 'tick:1', name: 'Ann' }, 'unknown_namespace'],
  [{ key: 'else:1', name: 'Ann' }, 'unknown_namespace'],
])('join %j is refused with %s', async (fields, code) => {
  const { connect } = await setUp()
  const client = await connect()
  expect(await client.ask({ type: 'join', id: 1, ...fields })).toMatchObject([{ type: 'error', id: 1, code }])
})

test('who may read may not join for that', async () => {
  const { connect } = await setUp({ policy: { anonymous: ruleOf({ read: ['*:**'] }) } })
  const client = await connect()
  expect(await client.ask({ type: 'join', id: 1, key, name: 'Ann' })).toMatchObject([{ code: 'unauthenticated' }])
})
