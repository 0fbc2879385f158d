// Rooms through real processes: clients publish, and others are sent the messages. Each rule that the protocol's page
// promises of rooms is a test here; faults are in faults.test.ts.
import { randomBytes } from 'node:crypto'
import { SignJWT } from 'jose'
import { createBackend } from '../../packages/client/backend.js'
import { eventually } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import { joinRooms, type RoomClient } from '../support/rooms.ts'
import { API_TOKEN, startRooms } from '../support/system.ts'

const JWT_SECRET = randomBytes(48).toString('base64')

const { journal, gateways, startGateway } = await startRooms({
  gateways: 2,
  namespaces: {
    room: {},
    short: { history: { messages: 5 } },
    brief: { history: { age: '1s' } },
    news: { publish: 'server', maxBytes: '1KiB' },
    private: {},
  },
  access: {
    anonymous: {
      read: ['room:*', 'short:*', 'brief:*', 'news:*'],
      publish: ['room:*', 'short:*', 'brief:*', 'news:*'],
    },
    everyone: { read: ['private:{sub}'], publish: ['private:{sub}'] },
    tokens: [{ secret: '$' + '{JWT_SECRET}', algorithms: ['HS256'] }],
  },
  env: {
    JWT_SECRET,
    GATEWAY_PUBLISHES_PENDING_BYTES_MAX: '16MiB',
    GATEWAY_REQUESTS_PER_SECOND_MAX: '100000',
  },
})
const [gateway, otherGateway] = gateways

let rooms = 0
/** A room that no other test has. */
const newRoom = (namespace = 'room') => `${namespace}:${++rooms}`

const newId = () => randomBytes(12).toString('base64url')

const headersOf = async (sub: string) => ({
  authorization: `Bearer ${await new SignJWT({})
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(sub)
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(Buffer.from(JWT_SECRET))}`,
})

async function publishSome(client: RoomClient, room: string, count: number) {
  const all = await Promise.all(Array.from({ length: count }, (_, index) => client.publish(room, index + 1)))
  expect(all.map(({ seq }) => seq)).toEqual(all.map((_, index) => index + all[0].seq))
  return all[0].epoch
}

/** The same one by one: the journal trims with each. */
async function publishOneByOne(client: RoomClient, room: string, count: number) {
  let epoch
  for (let n = 1; n <= count; n++) ({ epoch } = await client.publish(room, n))
  return epoch
}

test('what one client publishes, all who are subscribed are sent, through every gateway', async () => {
  const room = newRoom()
  const [one, two] = await Promise.all(gateways.map(({ url }) => joinRooms(url)))
  for (const client of [one, two]) {
    const { keys } = await client.subscribe(room)
    expect(keys).toEqual([{ key: room, epoch: expect.any(String), seq: 0, oldest: 1, recovered: false, count: 0 }])
  }
  const published = await one.publish(room, { text: 'Good morning' })
  expect(published).toMatchObject({ type: 'published', key: room, seq: 1, at: expect.any(Number) })
  await two.until(() => two.all('message').length === 1, 'the message')
  const { at } = published
  const messageId = expect.stringMatching(/^[\w-]{16}$/)
  expect(two.all('message')).toEqual([
    { type: 'message', key: room, seq: 1, at, messageId, data: { text: 'Good morning' } },
  ])
})

test('to a publisher who is subscribed the message comes first, and answers come in the order sent', async () => {
  const room = newRoom()
  const client = await joinRooms(gateway.url)
  await client.subscribe(room)
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      index % 50 === 7 ? client.publish(room, 'x'.repeat(70_000)) : client.publish(room, index),
    ),
  )
  expect(answers.filter(({ code }) => code === 'too_large')).toHaveLength(4)
  const said = client.received.filter(({ type }) => type === 'published' || type === 'error').map(({ id }) => id)
  expect(said).toEqual([...said].sort((one, other) => one - other))
  let seen = 0
  for (const { type, seq } of client.received) {
    if (type === 'message') seen = seq
    if (type === 'published') expect(seen).toBeGreaterThanOrEqual(seq)
  }
  expect(seen).toBe(196)
})

test('a client that resumes is given every message after its position, or none', async () => {
  const room = newRoom('short')
  const writer = await joinRooms(gateway.url)
  const epoch = await publishOneByOne(writer, room, 12)

  const resume = async (start: object) => {
    const client = await joinRooms(otherGateway.url)
    const { keys } = await client.subscribe({ key: room, ...start })
    await client.until(() => client.all('message').length === keys[0].count, 'the messages counted')
    return { ...keys[0], seqs: client.all('message').map(({ seq }) => seq) }
  }
  const head = { key: room, epoch, seq: 12, oldest: 8 }
  expect(await resume({ after: { epoch, seq: 9 } })).toEqual({
    ...head,
    recovered: true,
    count: 3,
    seqs: [10, 11, 12],
  })
  expect(await resume({ after: { epoch, seq: 7 } })).toMatchObject({ recovered: true, count: 5 })
  expect(await resume({ after: { epoch, seq: 12 } })).toMatchObject({ recovered: true, count: 0 })
  const none = { ...head, recovered: false, count: 0, seqs: [] }
  expect(await resume({ after: { epoch, seq: 6 } })).toEqual(none)
  expect(await resume({ after: { epoch, seq: 13 } })).toEqual(none)
  expect(await resume({ after: { epoch: 'another', seq: 9 } })).toEqual(none)
  expect(await resume({ last: 3 })).toEqual({ ...head, recovered: false, count: 3, seqs: [10, 11, 12] })
  expect(await resume({ last: 50 })).toMatchObject({ recovered: false, count: 5, seqs: [8, 9, 10, 11, 12] })
})

test('live messages go on behind those that were resumed', async () => {
  const room = newRoom()
  const writer = await joinRooms(gateway.url)
  const epoch = await publishSome(writer, room, 900)
  const reader = await joinRooms(otherGateway.url)
  const subscribed = reader.subscribe({ key: room, after: { epoch, seq: 50 } })
  await publishSome(writer, room, 50)
  await subscribed
  await reader.until(() => reader.all('message').at(-1)?.seq === 950, 'the last message')
  expect(reader.all('message').map(({ seq }) => seq)).toEqual(Array.from({ length: 900 }, (_, index) => 51 + index))
})

test('the same messageId of the same user is the same message', async () => {
  const room = newRoom()
  const [ann, bob] = [await joinRooms(gateway.url), await joinRooms(otherGateway.url)]
  const messageId = newId()
  const first = await ann.publish(room, { n: 1 }, messageId)
  expect(first).not.toHaveProperty('duplicate')
  expect(await bob.publish(room, { n: 1 }, messageId)).toEqual({ ...first, id: 1, duplicate: true })
  expect(await ann.publish(room, { n: 2 }, messageId)).toMatchObject({ type: 'error', code: 'id_conflict', key: room })
  expect((await ann.publish(room, { n: 2 }, newId())).seq).toBe(2)
})

test('a user publishes under the name of the token, whatever the message says, and has messageIds of its own', async () => {
  const room = newRoom()
  const [ann, bob, nobody] = await Promise.all([
    joinRooms(gateway.url, { headers: await headersOf('ann') }),
    joinRooms(gateway.url, { headers: await headersOf('bob') }),
    joinRooms(gateway.url),
  ])
  await nobody.subscribe(room)
  const messageId = newId()
  for (const client of [ann, bob, nobody]) {
    await client.request({ type: 'publish', key: room, messageId, data: 1, from: 'mallory' })
  }
  await nobody.until(() => nobody.all('message').length === 3, 'three messages')
  expect(nobody.all('message').map(({ from }) => from)).toEqual(['ann', 'bob', undefined])
})

test('what surely is not kept is refused with its reason', async () => {
  const client = await joinRooms(gateway.url)
  const ann = await joinRooms(gateway.url, { headers: await headersOf('ann') })
  const deep = JSON.parse('['.repeat(65) + ']'.repeat(65))
  expect(await client.publish('private:ann', 1)).toMatchObject({ code: 'unauthenticated' })
  expect(await ann.publish('private:bob', 1)).toMatchObject({ code: 'forbidden' })
  expect(await ann.publish('private:ann', 1)).toMatchObject({ type: 'published' })
  expect(await client.publish(newRoom('news'), 1)).toMatchObject({ code: 'forbidden' })
  expect(await client.publish(newRoom(), 'x'.repeat(65 * 1_024))).toMatchObject({ code: 'too_large' })
  expect(await client.publish(newRoom(), deep)).toMatchObject({ code: 'bad_message' })
  expect(await client.publish(newRoom(), 1, 'short')).toMatchObject({ code: 'bad_message' })
  expect(await client.publish('room:a#b', 1)).toMatchObject({ code: 'bad_key' })
  expect(await client.subscribe('private:ann')).toMatchObject({ type: 'subscribed', keys: [] })
  expect(client.all('error').at(-1)).toMatchObject({ code: 'unauthenticated', subscribed: false })
  expect(await client.request({ type: 'get', key: newRoom() })).toMatchObject({ code: 'unknown_namespace' })
  expect(await client.request({ type: 'history', key: 'private:ann' })).toMatchObject({ code: 'unauthenticated' })
})

test('a history is read part by part, forwards and backwards', async () => {
  const room = newRoom()
  const client = await joinRooms(gateway.url)
  const epoch = await publishSome(client, room, 120)
  const seqsOf = ({ messages }: any) => messages.map(({ seq }: any) => seq)
  const history = (part: object): Promise<any> => client.request({ type: 'history', key: room, ...part })
  const newest = await history({})
  expect(newest).toMatchObject({ type: 'history', key: room, epoch, oldest: 1, newest: 120, more: true })
  expect(seqsOf(newest)).toEqual(Array.from({ length: 50 }, (_, index) => 71 + index))
  const before = await history({ epoch, before: 11, limit: 500 })
  expect(seqsOf(before)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  expect(before.more).toBe(false)
  expect(seqsOf(await history({ after: 118 }))).toEqual([119, 120])
  expect(await history({ epoch: 'another', after: 0 })).toMatchObject({ code: 'other_epoch' })
  const short = newRoom('short')
  await publishOneByOne(client, short, 9)
  const truncated = await client.request({ type: 'history', key: short, after: 1 })
  expect(truncated).toMatchObject({ truncated: true, oldest: 5, messages: [{ seq: 5 }, {}, {}, {}, { seq: 9 }] })
})

test('a room that age has emptied keeps its head', async () => {
  const room = newRoom('brief')
  const client = await joinRooms(gateway.url)
  const epoch = await publishSome(client, room, 3)
  await eventually(async () => {
    const { messages } = await client.request({ type: 'history', key: room })
    return messages.length === 0
  }, 'the history being empty')
  const reader = await joinRooms(otherGateway.url)
  expect((await reader.subscribe(room)).keys).toMatchObject([{ epoch, seq: 3, oldest: 4, count: 0 }])
  expect((await client.publish(room, 1)).seq).toBe(4)
})

test('over HTTP a backend publishes, and whoever may reads', async () => {
  const room = newRoom('news')
  const reader = await joinRooms(otherGateway.url)
  await reader.subscribe(room)
  const message = { key: room, messageId: newId(), from: 'editor', data: { title: 'News' } }
  const response = await gateway.call('/v1/publish', message)
  expect([response.status, response.json()]).toEqual([
    200,
    { key: room, epoch: expect.any(String), seq: 1, at: expect.any(Number) },
  ])
  expect((await otherGateway.call('/v1/publish', message)).json()).toMatchObject({ seq: 1, duplicate: true })
  await reader.until(() => reader.all('message', room).length === 1, 'the message')
  expect(reader.all('message', room)).toMatchObject([{ from: 'editor', data: { title: 'News' } }])

  const read = await ask(`${gateway.http}/v1/messages/${room}?after=0`)
  expect([read.status, read.json()]).toMatchObject([
    200,
    { key: room, newest: 1, messages: [{ seq: 1, from: 'editor' }] },
  ])
  const held = await otherGateway.call(`/v1/rooms/${room}`)
  expect(held.json()).toMatchObject({ watched: true, sessionsSubscribed: 1, position: { seq: 1 }, sessionsBehind: 0 })
})

test('a backend publishes many through the library for backends, each once and in order', async () => {
  const [room, other] = [newRoom('news'), newRoom('news')]
  const keycast = createBackend(otherGateway.internal, { token: API_TOKEN })
  const messages = [1, 2, 3].flatMap(data => [room, other].map(key => ({ key, data, from: 'the editor' })))
  const kept = await keycast.publishAll(messages)
  expect(kept.map(({ key, seq }) => [key, seq])).toEqual(messages.map(({ key, data }) => [key, data]))
  const { messageId } = kept[4]
  expect(await keycast.publish(room, 3, { from: 'the editor', messageId })).toEqual({ ...kept[4], duplicate: true })
  await expect(keycast.publish(room, 'x'.repeat(2_000))).rejects.toMatchObject({ code: 'too_large', status: 413 })
  await keycast.close()
})

test('while the journal is away everybody is told so, and where rooms stand once it is back', async () => {
  const room = newRoom()
  const client = await joinRooms(gateway.url)
  const messageId = newId()
  journal.process().signal('SIGKILL')
  await journal.process().exited
  await eventually(
    async () => (await gateway.metric('keycast_gateway_journal_nodes_alive')) === 0,
    'the journal being missed',
  )
  const told = await client.subscribe(room)
  expect(told).toMatchObject({ type: 'error', key: room, subscribed: true, code: 'journal_unavailable' })
  expect(told.retryAfterMs).toBeGreaterThan(0)
  expect(await client.publish(room, 1, messageId)).toMatchObject({ code: 'journal_unavailable' })
  expect(await client.request({ type: 'history', key: room })).toMatchObject({ code: 'journal_unavailable' })
  await journal.restart()
  await client.until(() => client.all('subscribed').length === 1, 'the position')
  expect(client.all('subscribed')[0]).toMatchObject({ id: told.id, keys: [{ key: room, seq: 0 }] })
  expect(await client.publish(room, 1, messageId)).toMatchObject({ type: 'published', seq: 1 })
  expect(client.all('message')).toHaveLength(1)
})

test('a publish of which nothing is known can be sent again, and is kept once', async () => {
  const room = newRoom()
  const impatient = await startGateway({ GATEWAY_PUBLISH_MS: '1000' })
  const client = await joinRooms(impatient.url)
  await client.subscribe(room)
  const messageId = newId()
  journal.process().signal('SIGSTOP')
  const unknown = await client.publish(room, 1, messageId)
  expect(unknown).toMatchObject({ type: 'error', code: 'publish_unknown', retryAfterMs: expect.any(Number) })
  journal.process().signal('SIGCONT')
  await eventually(async () => (await client.publish(room, 1, messageId)).type === 'published', 'it being kept')
  const { messages } = await client.request({ type: 'history', key: room })
  expect(messages.filter((message: any) => message.messageId === messageId)).toHaveLength(1)
})
