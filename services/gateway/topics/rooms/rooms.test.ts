// Rooms through a whole gateway and a journal in memory: each rule of what a client is sent.
import { createMemoryRooms } from '@keycast/backbone/memory'
import { createTestGateway } from '../../test-support.ts'

const key = 'room:1'

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function setUp(options?: Parameters<typeof createTestGateway>[0]) {
  const started = createTestGateway({ rooms: { room: {}, news: { publish: 'server' } }, ...options })
  await started.gateway.start()
  stops.push(started.gateway.stop)
  const append = (text: string, room: string = key) =>
    started.journal.append({ room, messageId: undefined, from: 'ann', data: Buffer.from(text) })
  return { ...started, append }
}

const subscribed = (rest: object) => ({
  type: 'subscribed',
  id: 1,
  keys: [{ key, epoch: 'E1', seq: 0, oldest: 1, recovered: false, count: 0, ...rest }],
})

test('subscribed names a position, also of an empty room', async () => {
  const { connect } = await setUp()
  const client = await connect()
  expect(await client.ask({ type: 'subscribe', id: 1, keys: [key] })).toEqual([subscribed({})])
})

test('messages come in order, each once, with their data as it was published', async () => {
  const { connect, append } = await setUp()
  const [one, two] = [await connect(), await connect()]
  for (const client of [one, two]) await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  append('{"n": 1.0}')
  append('"two"')
  const expected = [
    expect.objectContaining({ type: 'message', key, seq: 1, from: 'ann', data: { n: 1 } }),
    expect.objectContaining({ seq: 2, data: 'two' }),
  ]
  expect(await one.received()).toEqual(expected)
  expect(String(two.connection.writes[0])).toContain('"data":{"n": 1.0}}')
  expect(await two.received()).toEqual(expected)
})

test('a publisher that is subscribed sees its message before it hears that it is kept', async () => {
  const { connect } = await setUp()
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  const messageId = 'a-message-of-mine-1'
  const heard = await client.ask({ type: 'publish', id: 2, key, messageId, data: { text: 'hi' } })
  expect(heard).toEqual([
    { type: 'message', key, seq: 1, at: expect.any(Number), messageId, data: { text: 'hi' } },
    { type: 'published', id: 2, key, epoch: 'E1', seq: 1, at: expect.any(Number) },
  ])
  expect(await client.ask({ type: 'publish', id: 3, key, messageId, data: { text: 'hi' } })).toEqual([
    { type: 'published', id: 3, key, epoch: 'E1', seq: 1, at: expect.any(Number), duplicate: true },
  ])
  expect(await client.ask({ type: 'publish', id: 4, key, messageId, data: { text: 'ho' } })).toEqual([
    expect.objectContaining({ type: 'error', id: 4, key, subscribed: true, code: 'id_conflict' }),
  ])
})

test('values are subscribed at once, and each room in a message of its own with the same id', async () => {
  const { connect } = await setUp()
  const client = await connect()
  const heard = await client.ask({ type: 'subscribe', id: 1, keys: [key, 'tick:1', 'room:2'] })
  expect(heard).toEqual([
    { type: 'subscribed', id: 1, keys: [{ key: 'tick:1' }] },
    { type: 'subscribed', id: 1, keys: [expect.objectContaining({ key })] },
    { type: 'subscribed', id: 1, keys: [expect.objectContaining({ key: 'room:2' })] },
  ])
})

test('nothing of a room comes after the answer to unsubscribe', async () => {
  const { connect, append } = await setUp()
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  append('1')
  client.send({ type: 'unsubscribe', id: 2, keys: [key] })
  append('2')
  expect(await client.received()).toEqual([{ type: 'ok', id: 2 }])
})

const seqsOf = (heard: any[]) => heard.filter(({ type }) => type === 'message').map(({ seq }) => seq)

test('who resumes is given all after the position, from the tail or from the journal', async () => {
  const { connect, append, gateway } = await setUp()
  for (let n = 1; n <= 8; n++) append(String(n))
  const first = await connect()
  const [told, ...messages] = await first.ask({
    type: 'subscribe',
    id: 1,
    keys: [{ key, after: { epoch: 'E1', seq: 5 } }],
  })
  expect(told).toEqual(subscribed({ seq: 8, recovered: true, count: 3 }))
  expect(seqsOf(messages)).toEqual([6, 7, 8])
  expect(gateway.counts.pageReads).toBe(1)
  append('9')
  await first.received()
  const second = await connect()
  const heard = await second.ask({ type: 'subscribe', id: 1, keys: [{ key, after: { epoch: 'E1', seq: 7 } }] })
  expect(heard[0]).toEqual(subscribed({ seq: 9, recovered: true, count: 2 }))
  expect(seqsOf(heard)).toEqual([8, 9])
  expect(gateway.counts.pageReads).toBe(1)
  expect(gateway.counts.resumes).toEqual({ recovered: 2, not_recovered: 0 })
})

test.each([
  ['the history no longer reaches back', { epoch: 'E1', seq: 2 }],
  ['the epoch is another', { epoch: 'E0', seq: 8 }],
  ['the position is beyond the head', { epoch: 'E1', seq: 9 }],
])('where %s nothing is passed off as the whole', async (_, after) => {
  const { connect, append, journal } = await setUp()
  for (let n = 1; n <= 8; n++) append(String(n))
  journal.trim(key, 5)
  const client = await connect()
  expect(await client.ask({ type: 'subscribe', id: 1, keys: [{ key, after }] })).toEqual([
    subscribed({ seq: 8, oldest: 4 }),
  ])
  append('9')
  expect(seqsOf(await client.received())).toEqual([9])
})

test('nothing is given that the history no longer has, though the gateway has just had it', async () => {
  const { connect, append, journal, gateway } = await setUp()
  const first = await connect()
  await first.ask({ type: 'subscribe', id: 1, keys: [key] })
  for (let n = 1; n <= 100; n++) append(String(n))
  expect(seqsOf(await first.received())).toHaveLength(100)
  journal.trim(key, 10)
  const begin = async (start: object) => {
    const client = await connect()
    const [head, ...rest] = await client.ask({ type: 'subscribe', id: 1, keys: [{ key, ...start }] })
    return { head, seqs: seqsOf(rest) }
  }
  expect(await begin({ after: { epoch: 'E1', seq: 5 } })).toEqual({
    head: subscribed({ seq: 100, oldest: 91 }),
    seqs: [],
  })
  const reads = gateway.counts.pageReads
  const held = [91, 92, 93, 94, 95, 96, 97, 98, 99, 100]
  expect(await begin({ after: { epoch: 'E1', seq: 90 } })).toEqual({
    head: subscribed({ seq: 100, oldest: 91, recovered: true, count: 10 }),
    seqs: held,
  })
  expect(await begin({ last: 50 })).toEqual({ head: subscribed({ seq: 100, oldest: 91, count: 10 }), seqs: held })
  expect(gateway.counts.pageReads).toBe(reads)
  expect(gateway.rooms.describe(key).oldest).toBe(91)
  expect(await first.ask({ type: 'history', id: 2, key, limit: 1 })).toMatchObject([{ oldest: 91 }])
})

test('the last few are no resume: as many come as there are', async () => {
  const { connect, append } = await setUp()
  for (let n = 1; n <= 3; n++) append(String(n))
  const client = await connect()
  const heard = await client.ask({ type: 'subscribe', id: 1, keys: [{ key, last: 2 }] })
  expect(heard[0]).toEqual(subscribed({ seq: 3, count: 2 }))
  expect(seqsOf(heard)).toEqual([2, 3])
  const again = await client.ask({ type: 'subscribe', id: 1, keys: [{ key, last: 50 }] })
  expect(again[0]).toEqual(subscribed({ seq: 3, count: 3 }))
  expect(seqsOf(again)).toEqual([1, 2, 3])
})

test('subscribing again begins the stream anew', async () => {
  const { connect, append } = await setUp()
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  append('1')
  expect(seqsOf(await client.received())).toEqual([1])
  append('2')
  // A message that was due and not written is not sent in addition.
  const heard = await client.ask({ type: 'subscribe', id: 1, keys: [{ key, after: { epoch: 'E1', seq: 0 } }] })
  expect(seqsOf(heard)).toEqual([1, 2])
})

test('while the journal is away the subscription stands, and is told its position when there is one', async () => {
  const { connect, journal, append } = await setUp()
  journal.setAway(true)
  const client = await connect()
  expect(await client.ask({ type: 'subscribe', id: 1, keys: [key, 'tick:1'] })).toEqual([
    expect.objectContaining({
      type: 'error',
      id: 1,
      key,
      subscribed: true,
      code: 'journal_unavailable',
      retryAfterMs: 1_000,
    }),
    { type: 'subscribed', id: 1, keys: [{ key: 'tick:1' }] },
  ])
  journal.setAway(false)
  append('1')
  expect(await client.received()).toEqual([subscribed({}), expect.objectContaining({ type: 'message', seq: 1 })])
})

test('a history that cannot be read now is read later: the resume waits for it', async () => {
  const { connect, journal, append, pass } = await setUp()
  for (let n = 1; n <= 3; n++) append(String(n))
  const other = await connect()
  await other.ask({ type: 'subscribe', id: 1, keys: [key] })
  journal.setAway(true)
  const client = await connect()
  const after = { epoch: 'E1', seq: 1 }
  expect(await client.ask({ type: 'subscribe', id: 1, keys: [{ key, after }] })).toMatchObject([
    { type: 'error', id: 1, key, subscribed: true, code: 'journal_unavailable' },
  ])
  await pass(1_000)
  expect(await client.received()).toEqual([])
  journal.setAway(false)
  const heard = await client.received()
  expect(heard[0]).toEqual(subscribed({ seq: 3, recovered: true, count: 2 }))
  expect(seqsOf(heard)).toEqual([2, 3])
})

test('another history is a gap for everybody, after which the stream goes on', async () => {
  const { connect, journal, append } = await setUp()
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  append('1')
  await client.received()
  journal.startEpoch('E2')
  append('"anew"')
  const heard = await client.received()
  expect(heard[0]).toEqual({ type: 'gap', key, epoch: 'E2', seq: 0, oldest: 1, reason: 'epoch' })
  expect(seqsOf(heard)).toEqual([1])
})

test('a gap of this gateway is none for who was sent more by another: they are told nothing, and nothing twice', async () => {
  const memory = createMemoryRooms()
  let events = {} as Parameters<typeof memory.backbone>[0]
  const backbone: typeof memory.backbone = given => {
    events = given
    return memory.backbone(given)
  }
  const { connect, append } = await setUp({ rooms: { room: {} }, journal: { ...memory, backbone } })
  const ahead = await connect()
  await ahead.ask({ type: 'subscribe', id: 1, keys: [key] })
  for (let n = 1; n <= 9; n++) append(String(n))
  expect(seqsOf(await ahead.received())).toHaveLength(9)
  // As a journal says it to one that had come to 5, when 8 was the last.
  events.onGap(key, { epoch: 'E1', seq: 8, oldest: 7, reason: 'trimmed' })
  const message = { seq: 9, at: 1, from: 'ann', messageId: undefined, data: Buffer.from('9') }
  events.onMessages(key, { epoch: 'E1', oldest: 7, messages: [message] })
  append('10')
  expect(await ahead.received()).toMatchObject([{ type: 'message', seq: 10 }])
})

test('a client that does not read costs a cursor: it is sent on from the journal, and past the history it is told', async () => {
  const { connect, append, journal, gateway } = await setUp({ settings: { tailBytesMax: 40_000 } })
  const [slow, quick] = [await connect(), await connect()]
  for (const client of [slow, quick]) await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  const data = JSON.stringify('x'.repeat(300))
  slow.connection.stuck = true
  for (let n = 1; n <= 20; n++) append(data)
  await slow.received()
  const quickly = seqsOf(await quick.received())
  for (let n = 21; n <= 100; n++) {
    append(data)
    quickly.push(...seqsOf(await quick.received()))
  }
  expect(quickly).toEqual(Array.from({ length: 100 }, (_, index) => index + 1))
  expect(slow.connection.session).toMatchObject({ pieces: [], pieceBytes: 0 })
  expect(gateway.rooms.describe(key)).toMatchObject({ sessionsSubscribed: 2, sessionsBehind: 1 })

  slow.connection.drain()
  const seen = seqsOf(await slow.received())
  expect(seen).toEqual(Array.from({ length: 80 }, (_, index) => index + 21))

  slow.connection.stuck = true
  for (let n = 101; n <= 150; n++) append(data)
  await slow.received()
  for (let n = 151; n <= 300; n++) {
    append(data)
    await quick.received()
  }
  journal.trim(key, 30)
  slow.connection.drain()
  const heard = await slow.received()
  expect(heard).toEqual([{ type: 'gap', key, epoch: 'E1', seq: 300, oldest: 271, reason: 'trimmed' }])
  append('1')
  expect(seqsOf(await slow.received())).toEqual([301])
  expect(gateway.counts.gaps.trimmed).toBe(1)
})

test('sessions at the same place are written the same Buffer, once a turn', async () => {
  const { connect, append } = await setUp()
  const clients = [await connect(), await connect(), await connect()]
  for (const client of clients) await client.ask({ type: 'subscribe', id: 1, keys: [key] })
  const written = new Set<unknown>()
  for (const { connection } of clients) {
    const { write } = connection._socket
    connection._socket.write = bytes => {
      written.add(bytes)
      return write(bytes)
    }
  }
  for (let n = 0; n < 50; n++) append('1')
  for (const client of clients) expect(seqsOf(await client.received())).toHaveLength(50)
  expect(written.size).toBe(1)
})

test('a room that never runs out of messages leaves the others their turn', async () => {
  const { connect, append } = await setUp()
  const client = await connect()
  const data = JSON.stringify('x'.repeat(60_000))
  for (let n = 0; n < 12; n++) append(data)
  append('"other"', 'room:2')
  const after = { epoch: 'E1', seq: 0 }
  const heard = await client.ask({
    type: 'subscribe',
    id: 1,
    keys: ['room:2', key].map(each => ({ key: each, after })),
  })
  const order = heard.filter(({ type }) => type === 'message').map(each => each.key)
  expect(order).toHaveLength(13)
  expect(order.indexOf('room:2')).toBeLessThan(8)
})

test('rooms count among the keys of a session, and end with it', async () => {
  const { connect, gateway, turn } = await setUp({ settings: { keysPerSessionMax: 2 } })
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: ['tick:1', key] })
  expect(await client.ask({ type: 'subscribe', id: 2, keys: ['room:2'] })).toMatchObject([
    { type: 'subscribed', id: 2, keys: [] },
    { type: 'error', id: 2, key: 'room:2', subscribed: false, code: 'too_many_keys' },
  ])
  expect(gateway.rooms.stats().rooms).toBe(1)
  client.connection.terminate()
  await turn()
  expect(gateway.rooms.stats()).toEqual({ rooms: 0, tailBytes: 0 })
})

test('a history is read, and waits while its client does not read', async () => {
  const { connect, append } = await setUp()
  for (let n = 1; n <= 3; n++) append(String(n))
  const client = await connect()
  const answer = {
    type: 'history',
    id: 5,
    key,
    epoch: 'E1',
    oldest: 1,
    newest: 3,
    more: true,
    messages: [
      { seq: 2, at: expect.any(Number), from: 'ann', messageId: expect.any(String), data: 2 },
      { seq: 3, at: expect.any(Number), from: 'ann', messageId: expect.any(String), data: 3 },
    ],
  }
  const request = { type: 'history', id: 5, key, limit: 2 }
  expect(await client.ask(request)).toEqual([answer])
  client.connection.stuck = true
  await client.ask({ type: 'history', id: 4, key, limit: 500 })
  await client.ask({ type: 'subscribe', id: 1, keys: Array.from({ length: 600 }, (_, n) => `nowhere:${n}`) })
  expect(await client.ask(request)).toEqual([])
  client.connection.drain()
  expect(await client.received()).toEqual([answer])
})

test.each([
  ['get', { type: 'get', id: 1, key }, 'unknown_namespace'],
  ['publish among values', { type: 'publish', id: 1, key: 'tick:1', data: 1 }, 'unknown_namespace'],
  ['history of a value', { type: 'history', id: 1, key: 'tick:1' }, 'unknown_namespace'],
  ['publish where only the server does', { type: 'publish', id: 1, key: 'news:1', data: 1 }, 'forbidden'],
  ['publish of too much', { type: 'publish', id: 1, key, data: 'x'.repeat(70_000) }, 'too_large'],
])('%s is refused', async (_, request, code) => {
  const { connect } = await setUp()
  const client = await connect()
  expect(await client.ask(request)).toMatchObject([{ type: 'error', id: 1, key: request.key, subscribed: false, code }])
})

test('a session that the errors of its own subscribe end leaves no subscription and no room behind', async () => {
  const { gateway, journal, connect } = await setUp({ settings: { unsentBytesMax: 100_000 } })
  journal.setAway(true)
  const client = await connect()
  client.connection.stuck = true
  client.send({ type: 'subscribe', id: 1, keys: Array.from({ length: 2_000 }, (_, n) => `room:${n}`) })
  await client.received()
  const { session } = client.connection
  expect(client.connection.closed?.code).toBe(4008)
  expect([session?.subscriptions.size, gateway.rooms.stats().rooms]).toEqual([0, 0])
})

test('a client that does not read and subscribes again and again is due each room once', async () => {
  const { connect, append } = await setUp()
  const keys = Array.from({ length: 20 }, (_, n) => `room:${n}`)
  const client = await connect()
  await client.ask({ type: 'subscribe', keys })
  client.connection.stuck = true
  append('1', 'room:0')
  await client.received()
  const { session } = client.connection
  for (let n = 0; n < 100; n++) client.send({ type: 'subscribe', keys })
  expect(session?.due.length).toBeLessThanOrEqual(2 * keys.length)
  client.connection.drain()
  const heard = await client.received()
  expect(heard).toHaveLength(keys.length)
  expect(session).toMatchObject({ due: [], dueEnded: 0 })
})
