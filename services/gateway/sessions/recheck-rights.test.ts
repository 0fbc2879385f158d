import { authorize } from '../access/backend/test-backend.ts'
import { readRule } from '../access/rule.ts'
import { authenticate, issuers, sign } from '../access/test-tokens.ts'
import { createPolicy, createTestGateway, readAs } from '../test-support.ts'

const nowMs = 1_800_000_000_000
const rule = (read: string[]) => readRule({ read }, { user: true, strict: true }).rule
const subscribe = (...keys: string[]) => ({ type: 'subscribe', keys })
const namespaces = { tick: {}, doc: {}, own: { authorize } }
const rooms = { room: {}, hall: {} }

/** A gateway with a namespace whose backend decides, so that it keeps the tokens of sessions. */
const start = (policy: Parameters<typeof createPolicy>[0] = {}) =>
  createTestGateway({ startAtMs: nowMs, namespaces, rooms, policy: { tokens: issuers, ...policy } })

type Bench = ReturnType<typeof start>

function take(
  { gateway }: Bench,
  given: Parameters<typeof createPolicy>[0] = {},
  next: Parameters<typeof readAs> = [namespaces, rooms],
) {
  gateway.takeOver(readAs(...next), createPolicy({ tokens: issuers, ...given }))
}

async function clientOf(bench: Bench, token: string) {
  const client = await bench.connect()
  await authenticate(client, token, bench.turn)
  return client
}

const answer = ({ backbone }: Bench, verdict: 'admitted' | 'failed') =>
  backbone.questions.shift()?.resolve({ verdict, ageMs: verdict === 'admitted' ? 0 : undefined, message: '' } as never)

test('subscriptions that anybody had end with the right to them, and the others stay', async () => {
  const bench = start()
  const client = await bench.connect()
  await client.ask(subscribe('tick:1', 'doc:1', 'room:1'))
  take(bench, { anonymous: rule(['doc:*']) })
  expect(await client.received()).toMatchObject([
    { type: 'error', key: 'tick:1', code: 'unauthenticated', subscribed: false },
    { type: 'error', key: 'room:1', code: 'unauthenticated', subscribed: false },
  ])
  bench.backbone.value('tick:1', '1')
  bench.backbone.value('doc:1', '2')
  expect(await client.received()).toMatchObject([{ type: 'value', key: 'doc:1' }])
  expect(await client.ask(subscribe('tick:1'))).toMatchObject([{ type: 'subscribed' }, { code: 'unauthenticated' }])
})

test('a key that is asked for again before its session is looked at is said to be subscribed, until it is not', async () => {
  const bench = start()
  const client = await bench.connect()
  await client.ask(subscribe('tick:1'))
  take(bench, { anonymous: rule(['doc:*']) })
  expect(await client.ask({ ...subscribe('tick:1'), id: 1 })).toMatchObject([
    { type: 'subscribed', id: 1, keys: [] },
    { type: 'error', id: 1, key: 'tick:1', code: 'unauthenticated', subscribed: true },
    { type: 'error', key: 'tick:1', code: 'unauthenticated', subscribed: false },
  ])
})

test('a user keeps what the token grants, and loses what everyone had', async () => {
  const bench = start({ anonymous: rule([]), everyone: rule(['doc:*', 'tick:{sub}']) })
  const client = await clientOf(bench, await sign({ nowMs, keys: { read: ['room:*'] } }))
  await client.ask(subscribe('doc:1', 'tick:ann', 'room:1'))
  take(bench, { anonymous: rule([]), everyone: rule([]) })
  expect(await client.received()).toMatchObject([
    { key: 'doc:1', code: 'forbidden' },
    { key: 'tick:ann', code: 'forbidden' },
  ])
  take(bench, { anonymous: rule([]), everyone: rule(['doc:*']) })
  bench.backbone.calls.length = 0
  await client.ask(subscribe('doc:1'))
  expect(bench.backbone.calls).toEqual(['watch doc:1'])
})

test('subscriptions to a namespace that is gone end with that reason', async () => {
  const bench = start()
  const client = await bench.connect()
  await client.ask(subscribe('tick:1', 'doc:1', 'hall:1'))
  take(bench, {}, [{ doc: {}, own: { authorize } }, { room: {} }])
  expect(await client.received()).toMatchObject([
    { key: 'tick:1', code: 'unknown_namespace', subscribed: false },
    { key: 'hall:1', code: 'unknown_namespace', subscribed: false },
  ])
  expect(bench.backbone.calls).toContain('unwatch tick:1')
})

test('the word of a backend that comes once its namespace is gone lets nobody in', async () => {
  const bench = start()
  const client = await bench.connect()
  await client.ask(subscribe('own:1'))
  take(bench, {}, [{ tick: {}, doc: {} }, rooms])
  // Sessions are looked at in the next turn.
  bench.backbone.questions.shift()?.resolve({ verdict: 'admitted', ageMs: 0, message: '' })
  expect(await client.received()).toMatchObject([{ key: 'own:1', code: 'unknown_namespace', subscribed: false }])
})

test('a session ends whose token nobody there may have signed, and only such a one', async () => {
  const bench = start()
  const [one, other] = issuers
  const kept = await clientOf(bench, await sign({ nowMs, keys: { read: ['doc:*'] } }))
  const before = await clientOf(bench, await sign({ nowMs, sub: 'bob' }))
  take(bench, { tokens: [{ ...one, keys: [...one.keys, ...other.keys] }] })
  expect(kept.connection.closed).toBeUndefined()
  take(bench, { tokens: [other] })
  expect([kept, before].map(({ connection }) => connection.closed)).toMatchObject([{ code: 4003 }, { code: 4003 }])
})

test('where a backend decides from now on, a value is shown once it admitted the viewer, and not before', async () => {
  const bench = start()
  const client = await bench.connect()
  await client.ask(subscribe('doc:1'))
  bench.backbone.value('doc:1', '1')
  await client.received()
  take(bench, {}, [{ ...namespaces, doc: { authorize } }, rooms])
  await bench.turn()
  bench.backbone.value('doc:1', '2')
  expect(await client.received()).toEqual([])
  bench.backbone.questions.shift()?.resolve({ verdict: 'admitted', ageMs: 0, message: '' })
  expect(await client.received()).toMatchObject([{ type: 'value', key: 'doc:1' }])
})

test('where no backend decides any more, whoever waited for one is shown the value', async () => {
  const bench = start()
  const client = await bench.connect()
  await client.ask(subscribe('own:1'))
  expect(bench.backbone.calls).not.toContain('watch own:1')
  take(bench, {}, [{ ...namespaces, own: {}, doc: { authorize } }, rooms])
  await bench.turn()
  expect(bench.backbone.calls).toContain('watch own:1')
})

test('a backend that is asked otherwise is asked at once, and who was admitted stays until it says no', async () => {
  const bench = start()
  const client = await bench.connect()
  await client.ask(subscribe('own:1'))
  bench.backbone.questions.shift()?.resolve({ verdict: 'admitted', ageMs: 0, message: '' })
  await bench.turn()
  bench.backbone.value('own:1', '1')
  await client.received()
  const other = { ...authorize, keepMs: 20_000 }
  take(bench, {}, [{ ...namespaces, own: { authorize: other } }, rooms])
  await bench.pass(250)
  const [question] = bench.backbone.questions
  expect(question.maxAgeMs).toBeLessThanOrEqual(250)
  bench.backbone.value('own:1', '2')
  expect(await client.received()).toMatchObject([{ type: 'value' }])
  question.resolve({ verdict: 'refused', ageMs: 0, message: '' })
  expect(await client.received()).toMatchObject([{ code: 'forbidden', key: 'own:1' }])
})

test('a get that waits while a backend comes to decide is answered once it admitted the viewer, and not before', async () => {
  const bench = start()
  const client = await bench.connect()
  await client.ask({ type: 'get', id: 1, key: 'doc:1' })
  take(bench, {}, [{ ...namespaces, doc: { authorize } }, rooms])
  bench.backbone.value('doc:1', '1')
  expect(await client.received()).toEqual([])
  bench.backbone.questions.shift()?.resolve({ verdict: 'refused', ageMs: 0, message: '' })
  expect(await client.received()).toMatchObject([{ id: 1, code: 'forbidden' }])
})

test('what a backend said does not count where another decides after a time without any', async () => {
  const bench = start()
  const client = await bench.connect()
  await client.ask(subscribe('own:1'))
  bench.backbone.questions.shift()?.resolve({ verdict: 'admitted', ageMs: 0, message: '' })
  await bench.turn()
  take(bench, {}, [{ ...namespaces, own: {}, doc: { authorize } }, rooms])
  await bench.turn()
  const other = { ...authorize, urlFor: () => 'http://127.0.0.1/other' }
  take(bench, {}, [{ ...namespaces, own: { authorize: other } }, rooms])
  await bench.turn()
  bench.backbone.value('own:1', '1')
  expect(await client.received()).toEqual([])
  expect(await (await bench.connect()).ask(subscribe('own:1'))).toMatchObject([{ type: 'subscribed' }])
  bench.backbone.questions.shift()?.resolve({ verdict: 'refused', ageMs: 0, message: '' })
  expect(await client.received()).toMatchObject([{ code: 'forbidden', key: 'own:1' }])
})

test.each([
  ['a question that was under way then is answered', true],
  ['sessions were not looked at between the two', false],
])('where a backend decides after a time without any, it admits nobody by failing, though %s', async (_, isAsking) => {
  const bench = start()
  const client = await bench.connect()
  await client.ask(subscribe('own:1'))
  answer(bench, 'admitted')
  await bench.turn()
  if (isAsking) bench.gateway.askAgain({ key: 'own:1' })
  if (isAsking) await bench.pass(250)
  take(bench, {}, [{ ...namespaces, own: {}, doc: { authorize } }, rooms])
  if (isAsking) await bench.turn()
  const other = { ...authorize, urlFor: () => 'http://127.0.0.1/other' }
  take(bench, {}, [{ ...namespaces, own: { authorize: other } }, rooms])
  await bench.turn()
  if (isAsking) answer(bench, 'admitted')
  await bench.turn()
  answer(bench, 'failed')
  await bench.turn()
  bench.backbone.value('own:1', '1')
  expect(await client.received()).toMatchObject([{ code: 'backend_error', key: 'own:1', subscribed: true }])
})

test('what comes after the change is shown to nobody by the file before, be sessions looked at ever so late', async () => {
  const members = 'named' as const
  const bench = createTestGateway({ namespaces, rooms: { room: {}, hall: { members } } })
  const client = await bench.connect()
  await client.ask({ type: 'subscribe', keys: ['tick:1', 'doc:1', 'room:1', { key: 'hall:1', presence: true }] })
  const other = await bench.connect()
  other.send({ type: 'publish', key: 'room:1', data: 1 })
  bench.backbone.value('tick:1', '1')
  bench.backbone.value('doc:1', '1')
  // The client's turn to be written to comes before its turn to be looked at.
  const next = readAs({ ...namespaces, doc: { authorize } }, { room: {}, hall: { members } })
  bench.gateway.takeOver(next, createPolicy({ anonymous: rule(['doc:*']) }))
  bench.backbone.value('tick:1', '2')
  bench.backbone.value('doc:1', '2')
  await bench.gateway.publishes.fromBackend({ key: 'room:1', from: 'ann', data: '1' })
  const told = await client.received()
  expect(told.filter(({ subscribed }) => !subscribed).map(({ key }) => key)).toEqual(['tick:1', 'room:1', 'hall:1'])
  expect(told.filter(({ type }) => type !== 'error')).toEqual([])
})

test('a value is not called stale because the file allows less age than its node knows yet', async () => {
  const bench = start()
  const client = await bench.connect()
  await client.ask(subscribe('tick:1'))
  const version = bench.backbone.value('tick:1', '1')
  await client.received()
  take(bench, {}, [{ ...namespaces, tick: { refreshMs: 50, timeoutMs: 100, refresh: '50ms' } as any }, rooms])
  await bench.pass(2_000)
  expect(await client.received()).toEqual([])
  bench.backbone.current('tick:1', version)
  await bench.pass(40_000)
  expect(await client.received()).toMatchObject([{ type: 'stale' }])
})

test.each([
  ['the first rooms', [namespaces, {}], {}, 'the first namespace with source: journal comes'],
  ['another lifetime of tokens', [namespaces, rooms], { lifetimeMsMax: 7 }, 'access.maxLifetime cannot change'],
] as const)('%s need a restart, and nothing else is taken over', (_, next, policy, why) => {
  const bench = start()
  expect(() => take(bench, { anonymous: rule([]), ...policy }, [...next])).toThrow(why)
})

test('the first backend that is asked for viewers needs a restart: their tokens were not kept', () => {
  const bench = createTestGateway({ namespaces: { tick: {} } })
  const next = readAs({ tick: { authorize } })
  expect(() => bench.gateway.takeOver(next, createPolicy())).toThrow('gateways kept no tokens')
})
