// Rooms whose backend decides whom it lets in: every door waits for the decision, and a refusal ends everything that
// stands.
import { createMemoryRooms } from '@keycast/backbone/memory'
import type { MetricMakers } from '@keycast/service'
import { createMetrics } from '@keycast/service/metrics'
import { admitted, authorize, failed, KEEP_MS, refused, viewerOf } from '../../access/backend/test-backend.ts'
import { readRule } from '../../access/rule.ts'
import { authenticate, issuers, sign } from '../../access/test-tokens.ts'
import { queuedBytesOf } from '../../delivery/slow-clients.ts'
import type { Session } from '../../sessions/session.ts'
import type { Settings } from '../../settings.ts'
import { createTestGateway } from '../../test-support.ts'

const startAtMs = 1_800_000_000_000
const KEY = 'room:1'
const everything = { read: ['*:**'], publish: ['*:**'], join: ['*:**'] }
const everyone = readRule(everything, { user: true, strict: true }).rule
const anonymous = readRule({ ...everything, publish: [] }, { user: false, strict: true }).rule
const open = { anonymous, everyone }

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

/** @param options `rules`: the rights of clients without a token, and of those with one */
async function setUp({
  metrics,
  rules = open,
  settings,
}: {
  metrics?: MetricMakers
  rules?: typeof open
  settings?: Partial<Settings>
} = {}) {
  const journal = createMemoryRooms({ at: () => startAtMs })
  const started = createTestGateway({
    startAtMs,
    settings,
    namespaces: { tick: {} },
    rooms: { room: { members: 'named', authorize, timeoutMs: 2_000 }, open: {} },
    policy: { tokens: issuers, ...rules },
    journal,
    metrics,
  })
  await started.gateway.start()
  stops.push(started.gateway.stop)
  const { backbone, connect, turn } = started

  /** @returns what else came meanwhile */
  async function auth(client: any, sub: string, keys?: object): Promise<any[]> {
    const token = await sign({ sub, keys, nowMs: startAtMs + started.now() - 1_000_000, ttlSeconds: 3_600 })
    return authenticate(client, token, turn)
  }

  return {
    ...started,
    auth,
    async client(sub: string) {
      const client = await connect()
      await auth(client, sub)
      return client
    },
    async decide(decision: any) {
      backbone.questions.shift()?.resolve(decision && { message: '', ...decision })
      await turn()
    },
    append: (text: string, room: string = KEY) =>
      journal.append({ room, messageId: undefined, from: 'bob', data: Buffer.from(JSON.stringify(text)) }),
  }
}

test('a subscription begins with the decision, with all the messages that the client asked for', async () => {
  const { backbone, client, decide, append } = await setUp()
  append('one')
  append('two')
  const ann = await client('ann')
  expect(await ann.ask({ type: 'subscribe', id: 1, keys: [{ key: KEY, last: 1 }] })).toEqual([])
  expect(backbone.questions).toMatchObject([{ key: `${KEY}|${viewerOf('ann')}`, deadlineMs: 4_000 }])
  await decide(admitted)
  expect(await ann.received()).toMatchObject([
    { type: 'subscribed', id: 1, keys: [{ key: KEY, seq: 2, count: 1 }] },
    { type: 'message', seq: 2, data: 'two' },
  ])
  append('three')
  expect(await ann.received()).toMatchObject([{ type: 'message', seq: 3 }])
})

test('a room whose backend is asked keeps nothing else of its request waiting', async () => {
  const { client, decide } = await setUp()
  const ann = await client('ann')
  const answers = await ann.ask({
    type: 'subscribe',
    id: 1,
    keys: [{ key: 'tick:1' }, { key: KEY }, { key: 'open:1' }],
  })
  expect(answers).toMatchObject([
    { type: 'subscribed', id: 1, keys: [{ key: 'tick:1' }] },
    { type: 'subscribed', id: 1, keys: [{ key: 'open:1' }] },
  ])
  await decide(admitted)
  expect(await ann.received()).toMatchObject([{ type: 'subscribed', id: 1, keys: [{ key: KEY }] }])
})

test('one that is refused is told so with the id of its request, and the others of it go on', async () => {
  const { client, decide, append } = await setUp()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }, { key: 'open:1' }] })
  await decide(refused)
  expect(await ann.received()).toMatchObject([
    { type: 'error', id: 1, key: KEY, code: 'forbidden', subscribed: false },
    { type: 'subscribed', id: 1, keys: [{ key: 'open:1' }] },
  ])
  append('secret')
  expect(await ann.received()).toEqual([])
  // The decision is kept: nobody is asked, and a room that does not exist answers the same.
  const [, error] = await ann.ask({ type: 'subscribe', id: 2, keys: [{ key: KEY }] })
  expect(error).toMatchObject({ id: 2, key: KEY, code: 'forbidden' })
  ann.send({ type: 'subscribe', id: 3, keys: [{ key: 'room:none' }] })
  await decide(refused)
  expect({ ...(await ann.received())[0], id: 2, key: KEY }).toEqual(error)
})

test.each([
  ['history', { type: 'history', id: 1, key: KEY, after: 0, limit: 5 }, { type: 'history', id: 1 }],
  ['publish', { type: 'publish', id: 1, key: KEY, data: 'hello' }, { type: 'published', id: 1, seq: 2 }],
  ['join', { type: 'join', id: 1, key: KEY, name: 'ann' }, { type: 'joined', id: 1, name: 'ann' }],
])('%s waits for the decision, and does nothing where it is a refusal or there is none', async (_, message, done) => {
  const { client, decide, append, backbone } = await setUp()
  append('one')
  const [ann, bob, eve] = [await client('ann'), await client('bob'), await client('eve')]
  expect(await ann.ask(message)).toEqual([])
  await decide(admitted)
  expect(await ann.received()).toMatchObject([done])
  bob.send(message)
  await decide(refused)
  expect(await bob.received()).toMatchObject([{ type: 'error', id: 1, key: KEY, code: 'forbidden' }])
  expect(await bob.ask({ ...message, id: 2 })).toMatchObject([{ id: 2, code: 'forbidden' }])
  eve.send(message)
  await decide(failed)
  expect(await eve.received()).toMatchObject([{ id: 1, code: 'backend_error', retryAfterMs: 1_000 }])
  expect(backbone.questions).toEqual([])
  const next = append('next') as any
  expect(next.seq).toBe(done.type === 'published' ? 3 : 2)
})

test('every way in which a publish or a join can end is exported at zero before it comes', async () => {
  const { registry, ...metrics } = createMetrics({ service: 'gateway' })
  const { backbone, client, decide, pass } = await setUp({ metrics })
  const results = async () => {
    const series = (await registry.metrics()).matchAll(/^keycast_gateway_(joins|publishes)_total\{result="(\w+)"\}/gm)
    return [...series].map(([, name, result]) => `${name} ${result}`).sort()
  }
  const atStart = await results()

  const told = new Set<string>()
  const tryBoth = async (user: any, decision?: any, nodesAlive = 1) => {
    user.send({ type: 'publish', id: 1, key: KEY, data: 'hello' })
    user.send({ type: 'join', id: 2, key: KEY, name: 'Ann' })
    backbone.nodesAlive = nodesAlive
    await decide(decision)
    for (const { id, code } of await user.received()) if (code) told.add(`${id === 1 ? 'publishes' : 'joins'} ${code}`)
  }
  await tryBoth(await client('ann'), refused)
  await tryBoth(await client('bob'), failed)
  await tryBoth(await client('eve'), undefined)
  await tryBoth(await client('joe'), undefined, 0)
  const late = await client('late')
  await pass(3_600_250)
  await late.received()
  await tryBoth(late)
  const left = await client('left')
  left.send({ type: 'join', id: 2, key: KEY, name: 'Ann' })
  left.send({ type: 'leave', id: 3, key: KEY })
  await decide(admitted)
  for (const { id, code } of await left.received()) if (id === 2) told.add(`joins ${code}`)

  const ends = ['forbidden', 'backend_error', 'fetcher_timeout', 'fetcher_unavailable', 'token_expired']
  const expected = ends.flatMap(code => [`joins ${code}`, `publishes ${code}`])
  expect([...told].sort()).toEqual([...expected, 'joins bad_message'].sort())
  expect(await results()).toEqual(atStart)
})

test('publishes to one room are answered, and kept, in their order', async () => {
  const { client, decide } = await setUp()
  const ann = await client('ann')
  for (const id of [1, 2, 3]) ann.send({ type: 'publish', id, key: KEY, data: `m${id}` })
  ann.send({ type: 'publish', id: 4, key: 'open:1', data: 'elsewhere' })
  expect(await ann.received()).toMatchObject([{ type: 'published', id: 4 }])
  await decide(admitted)
  expect((await ann.received()).map(({ id, seq }: any) => [id, seq])).toEqual([
    [1, 1],
    [2, 2],
    [3, 3],
  ])
})

test('nothing is published for a session that ended before the decision, nor in the name of who came later', async () => {
  const { client, connect, auth, decide, append, gateway } = await setUp()
  const ann = await client('ann')
  ann.send({ type: 'publish', id: 1, key: KEY, data: 'lost' })
  gateway.revoke({ sub: 'ann', before: startAtMs / 1_000 + 1 })
  await decide(admitted)
  const somebody = await connect()
  somebody.send({ type: 'history', id: 1, key: KEY, after: 0, limit: 5 })
  await auth(somebody, 'bob')
  // A decision for an anonymous session does not open the room to the user that the session has become.
  await decide(admitted)
  expect(await somebody.received()).toEqual([])
  await decide(refused)
  expect(await somebody.received()).toMatchObject([{ id: 1, code: 'forbidden' }])
  expect(append('first')).toMatchObject({ seq: 1 })
})

test('while it stands a subscription is asked about again, and a membership too; both end once the backend refuses', async () => {
  const { client, decide, pass, backbone, append } = await setUp()
  const [ann, bob] = [await client('ann'), await client('bob')]
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY, presence: true }] })
  await decide(admitted)
  bob.send({ type: 'join', id: 1, key: KEY, name: 'bob' })
  await decide(admitted)
  await ann.received()
  await bob.received()
  for (let times = 0; times < 2; times++) {
    await pass(KEEP_MS + 250)
    expect(backbone.questions).toHaveLength(2)
    await decide(admitted)
    await decide(admitted)
  }
  await ann.received()
  await pass(KEEP_MS + 250)
  const [first] = backbone.questions
  const isAnn = first.key.endsWith(viewerOf('ann'))
  await decide(isAnn ? admitted : refused)
  await decide(isAnn ? refused : admitted)
  expect(await bob.received()).toMatchObject([{ type: 'error', key: KEY, code: 'forbidden', subscribed: false }])
  await pass(1_000)
  expect(await ann.received()).toMatchObject([{ type: 'presence', key: KEY, left: [{ name: 'bob' }] }])
  await pass(KEEP_MS)
  await decide(refused)
  expect(await ann.received()).toMatchObject([{ type: 'error', key: KEY, code: 'forbidden', subscribed: false }])
  append('after')
  expect(await ann.received()).toEqual([])
  await pass(3 * KEEP_MS)
  expect(backbone.questions).toEqual([])
})

test('while the backend is down a room rests after one more keep, and goes on where it stopped', async () => {
  const { client, decide, pass, backbone, append } = await setUp()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(admitted)
  append('one')
  expect((await ann.received()).at(-1)).toMatchObject({ type: 'message', seq: 1 })
  for (let ms = 0; ms < 2 * KEEP_MS + 1_000; ms += 1_000) {
    await pass(1_000)
    while (backbone.questions.length > 0) await decide(failed)
  }
  expect(await ann.received()).toMatchObject([{ code: 'backend_error', key: KEY, subscribed: true }])
  append('two')
  append('three')
  expect(await ann.received()).toEqual([])
  await pass(1_250)
  await decide(admitted)
  expect(await ann.received()).toMatchObject([
    { type: 'subscribed', keys: [{ key: KEY, recovered: true, count: 2 }] },
    { type: 'message', seq: 2 },
    { type: 'message', seq: 3 },
  ])
})

test('a room that rests with a gap its client was not told of is no recovery', async () => {
  const { client, decide, pass, backbone, append, journal, turn } = await setUp()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(admitted)
  append('one')
  await ann.received()
  const restsAtMs = 2 * KEEP_MS
  const failFor = async (lengthMs: number) => {
    for (let ms = 0; ms < lengthMs; ms += 1_000) {
      await pass(1_000)
      while (backbone.questions.length > 0) await decide(failed)
    }
  }
  await failFor(restsAtMs - 2_000)
  expect(await ann.received()).toEqual([])
  // This message fills the socket; the gap after it is not written.
  ann.connection.stuck = true
  append('x'.repeat(20_000))
  await turn()
  journal.startEpoch('E2')
  await turn()
  await failFor(3_000)
  ann.connection.drain()
  expect(await ann.received()).toMatchObject([
    { type: 'message', seq: 2 },
    { code: 'backend_error', key: KEY, subscribed: true },
  ])
  await pass(1_250)
  await decide(admitted)
  expect(await ann.received()).toMatchObject([
    { type: 'subscribed', keys: [{ epoch: 'E2', seq: 0, recovered: false }] },
  ])
  append('anew')
  expect(await ann.received()).toMatchObject([{ type: 'message', seq: 1, data: 'anew' }])
})

test('a member stays while the backend is down, and a refused request says that the resting subscription stands', async () => {
  const { client, decide, pass, backbone } = await setUp()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY, presence: true }] })
  await decide(admitted)
  await ann.ask({ type: 'join', id: 2, key: KEY, name: 'ann' })
  for (let ms = 0; ms < 2 * KEEP_MS + 1_000; ms += 1_000) {
    await pass(1_000)
    while (backbone.questions.length > 0) await decide(failed)
  }
  const told = await ann.received()
  expect(told.filter(({ type }: any) => type === 'error')).toMatchObject([
    { code: 'backend_error', key: KEY, subscribed: true },
  ])
  for (const message of [
    { type: 'publish', id: 3, key: KEY, data: 'x' },
    { type: 'history', id: 3, key: KEY, after: 0, limit: 5 },
    { type: 'join', id: 3, key: KEY, name: 'ann' },
  ]) {
    expect(await ann.ask(message)).toMatchObject([{ id: 3, code: 'backend_error', subscribed: true }])
  }
  await pass(1_250)
  await decide(admitted)
  const back = await ann.received()
  expect(back[0]).toMatchObject({ type: 'subscribed', keys: [{ key: KEY, recovered: true }] })
  expect(JSON.stringify(back)).toContain('"ann"')
})

test('a backend that is down from the start is told with the id of the request, and its room is announced later', async () => {
  const { client, decide, pass } = await setUp()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }, { key: 'open:1' }] })
  await decide(failed)
  expect(await ann.received()).toMatchObject([
    { type: 'error', id: 1, key: KEY, code: 'backend_error', subscribed: true },
    { type: 'subscribed', id: 1, keys: [{ key: 'open:1' }] },
  ])
  await pass(1_250)
  await decide(admitted)
  expect(await ann.received()).toMatchObject([{ type: 'subscribed', id: 1, keys: [{ key: KEY }] }])
})

test('a room that rests before the journal was heard is announced with the id of its request once both are back', async () => {
  const { client, decide, pass, backbone, append, journal } = await setUp()
  for (const text of ['one', 'two', 'three']) append(text)
  const ann = await client('ann')
  journal.setAway(true)
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY, after: { epoch: 'E1', seq: 1 } }] })
  await decide(admitted)
  expect(await ann.received()).toMatchObject([{ id: 1, code: 'journal_unavailable', subscribed: true }])
  for (let ms = 0; ms < 2 * KEEP_MS + 1_000; ms += 1_000) {
    await pass(1_000)
    while (backbone.questions.length > 0) await decide(failed)
  }
  expect(await ann.received()).toMatchObject([{ code: 'backend_error', key: KEY, subscribed: true }])
  await pass(1_250)
  await decide(admitted)
  journal.setAway(false)
  await pass(1_000)
  expect(await ann.received()).toMatchObject([
    { id: 1, code: 'journal_unavailable', subscribed: true },
    { type: 'subscribed', id: 1, keys: [{ key: KEY, recovered: true, count: 2 }] },
    { type: 'message', seq: 2 },
    { type: 'message', seq: 3 },
  ])
})

test('a leave, or the end of the session, before the decision undoes the join', async () => {
  const { client, decide } = await setUp()
  const [ann, watcher] = [await client('ann'), await client('bob')]
  ann.send({ type: 'join', id: 1, key: KEY, name: 'ann' })
  expect(await ann.ask({ type: 'join', id: 2, key: KEY, name: 'ann' })).toMatchObject([
    { id: 2, code: 'too_many_waiting' },
  ])
  expect(await ann.ask({ type: 'leave', id: 3, key: KEY })).toMatchObject([
    { type: 'ok', id: 3 },
    { id: 1, code: 'bad_message' },
  ])
  await decide(admitted)
  expect(await ann.received()).toEqual([])
  watcher.send({ type: 'subscribe', id: 1, keys: [{ key: KEY, presence: true }] })
  await decide(admitted)
  const heard = await watcher.received()
  expect(JSON.stringify(heard)).not.toContain('"ann"')
})

test('a join after a leave is decided on its own, and the one before the leave is undone', async () => {
  const { client, decide, backbone } = await setUp()
  const ann = await client('ann')
  ann.send({ type: 'join', id: 1, key: KEY, name: 'Ann' })
  ann.send({ type: 'leave', id: 2, key: KEY })
  ann.send({ type: 'join', id: 3, key: KEY, name: 'Bob' })
  expect(await ann.received()).toMatchObject([
    { type: 'ok', id: 2 },
    { type: 'error', id: 1, code: 'bad_message' },
  ])
  expect(backbone.questions).toHaveLength(1)
  await decide(admitted)
  expect(await ann.received()).toMatchObject([{ type: 'joined', id: 3, name: 'Bob' }])
  ann.send({ type: 'subscribe', id: 4, keys: [{ key: KEY, presence: true }] })
  const heard = JSON.stringify(await ann.received())
  expect(heard).toContain('"Bob"')
  expect(heard).not.toContain('"Ann"')
})

test('an anonymous session that becomes a user is asked for anew, and goes on where it was', async () => {
  const { connect, auth, decide, backbone, append } = await setUp()
  const client = await connect()
  client.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(admitted)
  append('one')
  await client.received()
  await auth(client, 'ann')
  expect(backbone.questions).toMatchObject([{ key: `${KEY}|${viewerOf('ann')}` }])
  append('two')
  expect(await client.received()).toEqual([])
  await decide(admitted)
  expect(await client.received()).toMatchObject([{ type: 'subscribed' }, { type: 'message', seq: 2 }])
})

test('what the rights do not cover, the backend is not asked', async () => {
  const { connect, backbone } = await setUp()
  const client = await connect()
  expect(await client.ask({ type: 'publish', id: 1, key: KEY, data: 'x' })).toMatchObject([{ code: 'unauthenticated' }])
  expect(backbone.questions).toEqual([])
})

test('rights that a new token does not cover end the wait for the decision, which then begins nothing', async () => {
  const { rule: nothing } = readRule({}, { user: false, strict: true })
  const { connect, auth, decide, append } = await setUp({ rules: { anonymous: nothing, everyone: nothing } })
  const client = await connect()
  await auth(client, 'ann', { read: ['room:*'] })
  expect(await client.ask({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })).toEqual([])
  const told = [...(await auth(client, 'ann', { read: ['open:*'] })), ...(await client.received())]
  expect(told).toMatchObject([{ type: 'error', key: KEY, code: 'forbidden', subscribed: false }])
  await decide(admitted)
  append('secret')
  expect(await client.received()).toEqual([])
})

test('a session that the answer to its auth ends is no session of its viewers, and no decision holds it', async () => {
  const unsentBytesMax = 10_000
  const { connect, decide, backbone, turn } = await setUp({ settings: { unsentBytesMax } })
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 1, keys: [{ key: 'tick:1' }, { key: KEY }] })
  await decide(admitted)
  client.connection.stuck = true
  backbone.value('tick:1', `"${'x'.repeat(20_000)}"`)
  await turn()
  const session = client.connection.session as Session
  // Its socket is full, and what is queued leaves no room for `authed`.
  for (let id = 1_000; queuedBytesOf(session) < unsentBytesMax - 200; id++) client.send({ type: 'ping', id })
  const before = session.viewer

  client.send({ type: 'auth', id: 2, token: await sign({ sub: 'ann', nowMs: startAtMs }) })
  await new Promise(resolve => Object.assign(client.connection, { close: resolve }))

  expect(session).toMatchObject({ ended: true, endReason: 'slow' })
  const viewers = [before, session.viewer]
  expect(viewers.map(viewer => viewer?.uses)).toEqual([0, 0])
  for (const viewer of viewers) {
    for (const { sessions } of viewer?.decisions.values() ?? []) expect(sessions.size).toBe(0)
  }
})

const roomsOf = (from: number, count: number) => Array.from({ length: count }, (_, n) => `room:${from + n}`)

test('a join that waits for the backend counts among the 100 of its session, until it is refused or taken back', async () => {
  const { client, decide } = await setUp()
  const ann = await client('ann')
  for (const key of roomsOf(0, 100)) ann.send({ type: 'join', id: key, key, name: 'Ann' })
  await ann.received()
  const join = { type: 'join', id: 1, key: 'room:1000', name: 'Ann' }
  expect(await ann.ask(join)).toMatchObject([{ type: 'error', id: 1, code: 'too_many_keys' }])
  await decide(refused)
  expect(await ann.received()).toMatchObject([{ id: 'room:0', code: 'forbidden' }])
  expect(await ann.ask(join)).toEqual([])
  expect(await ann.ask({ ...join, key: 'room:1001' })).toMatchObject([{ code: 'too_many_keys' }])
  await ann.ask({ type: 'leave', id: 2, key: 'room:99' })
  expect(await ann.ask({ ...join, key: 'room:1001' })).toEqual([])
})

test('joins that a session takes back at once are not asked about, beyond the 64 that are under way', async () => {
  const { client, decide, backbone } = await setUp()
  const ann = await client('ann')
  for (const key of roomsOf(0, 200)) {
    ann.send({ type: 'join', id: key, key, name: 'Ann' })
    ann.send({ type: 'leave', key })
  }
  ann.send({ type: 'join', id: 1, key: 'room:last', name: 'Ann' })
  let asked = 0
  for (; backbone.questions.length > 0; asked++) await decide(admitted)
  expect(asked).toBe(65)
  expect((await ann.received()).at(-1)).toMatchObject({ type: 'joined', id: 1 })
})

test('a join whose rights a new token does not cover ends with the wait for the decision', async () => {
  const { rule: nothing } = readRule({}, { user: false, strict: true })
  const { connect, auth, decide } = await setUp({ rules: { anonymous: nothing, everyone: nothing } })
  const client = await connect()
  await auth(client, 'ann', { join: ['room:*'] })
  expect(await client.ask({ type: 'join', id: 1, key: KEY, name: 'Ann' })).toEqual([])
  const told = [...(await auth(client, 'ann', { join: ['open:*'] })), ...(await client.received())]
  expect(told).toMatchObject([{ type: 'error', id: 1, key: KEY, code: 'forbidden' }])
  await decide(admitted)
  expect(await client.received()).toEqual([])
})

test('nobody is asked about the joins, gets and publishes of a session that ended; those of others come up', async () => {
  const { client, backbone, decide } = await setUp()
  const [ann, other] = [await client('ann'), await client('ann')]
  for (const key of roomsOf(0, 90)) ann.send({ type: 'join', id: key, key, name: 'Ann' })
  for (const key of roomsOf(100, 30)) ann.send({ type: 'publish', id: key, key, data: 1 })
  for (const key of roomsOf(200, 30)) ann.send({ type: 'history', id: key, key })
  // So many of one viewer's are asked at a time.
  expect(backbone.questions).toHaveLength(64)
  // One that another session waits for as well.
  other.send({ type: 'history', id: 1, key: 'room:229' })
  ann.connection.emit('close', 1006, Buffer.alloc(0))
  const asked: string[] = []
  while (backbone.questions.length > 0) {
    asked.push(backbone.questions[0].key.split('|')[0])
    await decide(admitted)
  }
  expect(asked).toEqual([...roomsOf(0, 64), 'room:229'])
  expect(await other.received()).toMatchObject([{ type: 'history', id: 1, key: 'room:229' }])
})
