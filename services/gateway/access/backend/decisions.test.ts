// A backend that decides, seen from a gateway's doors: nothing of a key is given, or asked for, before it was decided.
import { authenticate } from '../test-tokens.ts'
import {
  admitted,
  failed,
  KEEP_MS,
  KEY,
  nowMs,
  refused,
  createDecidingGateway as setup,
  viewerOf,
} from './test-backend.ts'

test('a get waits for the decision, and the key is only then looked up', async () => {
  const { backbone, client, decide } = setup()
  const ann = await client('ann')
  expect(await ann.ask({ type: 'get', id: 1, key: KEY })).toEqual([])
  expect(backbone.calls).toEqual([])
  expect(backbone.questions).toMatchObject([
    {
      key: `${KEY}|${viewerOf('ann')}`,
      credentials: { authorization: `Bearer ${ann.token}`, expiresAt: nowMs + 300_000 },
    },
  ])
  await decide(admitted)
  expect(backbone.calls).toEqual([`get ${KEY}`])
  backbone.value(KEY, '1')
  expect(await ann.received()).toMatchObject([{ type: 'value', id: 1, key: KEY }])
})

test('a cached value is not given before the decision, nor to whom the backend refuses', async () => {
  const { backbone, client, decide } = setup()
  const [ann, bob] = [await client('ann'), await client('bob')]
  ann.send({ type: 'get', id: 1, key: KEY })
  await decide(admitted)
  backbone.value(KEY, '1')

  expect(await bob.ask({ type: 'get', id: 2, key: KEY })).toEqual([])
  await decide(refused)
  expect(await bob.received()).toMatchObject([{ type: 'error', id: 2, code: 'forbidden', key: KEY }])
  // Kept: nobody is asked.
  expect(await bob.ask({ type: 'get', id: 3, key: KEY })).toMatchObject([{ code: 'forbidden' }])
  expect((await ann.ask({ type: 'get', id: 4, key: KEY })).at(-1)).toMatchObject({ type: 'value', id: 4 })
  expect(backbone.questions).toEqual([])
})

test('a key that is refused and one that does not exist answer the same', async () => {
  const { client, decide, backbone } = setup()
  const [ann, bob] = [await client('ann'), await client('bob')]
  ann.send({ type: 'get', id: 1, key: KEY })
  await decide(admitted)
  backbone.value(KEY, '1')
  bob.send({ type: 'get', id: 1, key: KEY })
  await decide(refused)
  const [existing] = await bob.received()
  bob.send({ type: 'get', id: 1, key: 'doc:none' })
  await decide(refused)
  const [absent] = await bob.received()
  expect({ ...absent, key: KEY }).toEqual(existing)
})

test('what the rights do not cover, the backend is not asked', async () => {
  const { backbone, connect } = setup()
  const client = await connect()
  expect(await client.ask({ type: 'get', id: 1, key: KEY })).toMatchObject([{ code: 'unauthenticated' }])
  expect(await client.ask({ type: 'subscribe', id: 2, keys: [{ key: KEY }] })).toMatchObject([
    { type: 'subscribed', keys: [] },
    { code: 'unauthenticated' },
  ])
  expect(backbone.questions).toEqual([])
})

test('all without a token are one viewer, asked for without one', async () => {
  const { backbone, connect, decide } = setup()
  const [one, two] = [await connect(), await connect()]
  one.send({ type: 'get', id: 1, key: 'doc:open' })
  two.send({ type: 'get', id: 1, key: 'doc:open' })
  expect(backbone.questions).toMatchObject([{ key: 'doc:open|anonymous', credentials: {} }])
  expect(backbone.questions).toHaveLength(1)
  await decide(refused)
  expect(await one.received()).toMatchObject([{ code: 'forbidden' }])
  expect(await two.received()).toMatchObject([{ code: 'forbidden' }])
})

test('a subscription is confirmed at once and begins with the decision', async () => {
  const { backbone, client, decide } = setup()
  const ann = await client('ann')
  expect(await ann.ask({ type: 'subscribe', id: 1, keys: [{ key: KEY }, { key: 'tick:1' }] })).toEqual([
    { type: 'subscribed', id: 1, keys: [{ key: KEY }, { key: 'tick:1' }] },
  ])
  expect(backbone.calls).toEqual(['watch tick:1'])
  await decide(admitted)
  expect(backbone.calls).toEqual(['watch tick:1', `watch ${KEY}`])
  backbone.value(KEY, '1')
  expect(await ann.received()).toMatchObject([{ type: 'value', key: KEY }])
})

test('a subscription that is refused ends with the reason, and its key is never watched', async () => {
  const { backbone, client, decide } = setup()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(refused)
  expect(await ann.received()).toMatchObject([
    { type: 'subscribed' },
    { type: 'error', code: 'forbidden', key: KEY, subscribed: false },
  ])
  expect(await ann.ask({ type: 'subscribe', id: 2, keys: [{ key: KEY }] })).toMatchObject([
    { type: 'subscribed', keys: [] },
    { code: 'forbidden', id: 2, subscribed: false },
  ])
  expect(backbone.calls).toEqual([])
  expect(backbone.questions).toEqual([])
})

test('while it stands a subscription is asked about again each time the decision is over, and ends when refused', async () => {
  const { backbone, client, decide, pass } = setup()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(admitted)
  backbone.value(KEY, '1')
  await ann.received()
  for (let times = 0; times < 3; times++) {
    await pass(KEEP_MS - 500)
    expect(backbone.questions).toEqual([])
    await pass(750)
    expect(backbone.questions).toHaveLength(1)
    // Meanwhile it goes on.
    backbone.value(KEY, `[${times}]`)
    expect((await ann.received()).at(-1)).toMatchObject({ type: 'value', data: [times] })
    await decide(admitted)
  }
  await pass(KEEP_MS + 250)
  await decide(refused)
  expect((await ann.received()).at(-1)).toMatchObject({ code: 'forbidden', key: KEY, subscribed: false })
  expect(backbone.calls.at(-1)).toBe(`unwatch ${KEY}`)
})

test('while the backend is down access is kept for once more the time, and then told; it goes on when it is back', async () => {
  const { backbone, client, decide, pass } = setup()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(admitted)
  backbone.value(KEY, '1')
  await ann.received()
  for (let ms = 0; ms < 2 * KEEP_MS - 1_000; ms += 1_000) {
    await pass(1_000)
    while (backbone.questions.length > 0) await decide(failed)
    backbone.value(KEY, `[${ms}]`)
    expect(await ann.received()).toMatchObject([{ type: 'value' }])
  }
  expect(await ann.ask({ type: 'get', id: 2, key: KEY })).toMatchObject([{ type: 'value', id: 2 }])
  await pass(1_250)
  while (backbone.questions.length > 0) await decide(failed)
  const told = await ann.received()
  expect(told).toMatchObject([{ type: 'error', code: 'backend_error', key: KEY, subscribed: true }])
  expect(told[0].retryAfterMs).toBeGreaterThan(0)
  expect(backbone.calls.at(-1)).toBe(`unwatch ${KEY}`)
  await pass(1_250)
  await decide(failed)
  expect(await ann.received()).toEqual([])
  await pass(1_250)
  await decide(admitted)
  expect(backbone.calls.at(-1)).toBe(`watch ${KEY}`)
  backbone.value(KEY, '2')
  expect(await ann.received()).toMatchObject([{ type: 'value', data: 2 }])
})

test('what the backend says to another gateway of a viewer counts here', async () => {
  const { client, decide, pass, backbone } = setup()
  const ann = await client('ann')
  ann.send({ type: 'get', id: 1, key: KEY })
  await decide({ ...failed, ageMs: KEEP_MS + 1 })
  expect(backbone.calls).toEqual([`get ${KEY}`])
  backbone.value(KEY, '1')
  await ann.received()
  ann.send({ type: 'get', id: 2, key: 'doc:2' })
  await decide({ ...failed, ageMs: 2 * KEEP_MS })
  expect(await ann.received()).toMatchObject([{ code: 'backend_error', retryAfterMs: 1_000 }])
  ann.send({ type: 'subscribe', id: 3, keys: [{ key: 'doc:3' }] })
  await decide({ ...admitted, ageMs: KEEP_MS - 1_000 })
  await pass(1_250)
  expect(backbone.questions).toMatchObject([{ key: `doc:3|${viewerOf('ann')}` }])
})

test('a fetcher that says nothing admits nobody, and is asked again', async () => {
  const { client, decide, pass, backbone } = setup()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(undefined)
  expect((await ann.received()).at(-1)).toMatchObject({
    code: 'fetcher_timeout',
    subscribed: true,
    retryAfterMs: 1_000,
  })
  await pass(1_250)
  expect(backbone.questions).toHaveLength(1)
  // One that comes meanwhile is told as well.
  const tab = await client('ann', 100)
  tab.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(undefined)
  expect(await tab.received()).toMatchObject([{ type: 'subscribed' }, { code: 'fetcher_timeout', subscribed: true }])
  expect(await ann.received()).toEqual([])
  const late = await client('ann', 100)
  expect(await late.ask({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })).toMatchObject([
    { type: 'subscribed' },
    { code: 'fetcher_timeout', subscribed: true },
  ])
})

test('a renewed token is asked with from then on, and at once where the one before was refused', async () => {
  const { backbone, client, decide, token, turn, pass } = setup()
  const ann = await client('ann', 20)
  ann.send({ type: 'get', id: 1, key: KEY })
  await decide(refused)
  await ann.received()
  const renewed = await token('ann', 100)
  await authenticate(ann, renewed, turn)
  ann.send({ type: 'get', id: 2, key: KEY })
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${renewed}` } }])
  await decide(admitted)
  await pass(KEEP_MS)
  const older = await client('ann', 10)
  older.send({ type: 'get', id: 3, key: KEY })
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${renewed}` } }])
})

test('a token that the backend refuses gives way to another of the user, though that expires sooner', async () => {
  const { backbone, client, clientWith, decide, pass } = setup()
  const first = await client('ann', 3_600)
  const second = await client('ann', 60)
  second.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${first.token}` } }])
  await decide(refused)
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${second.token}` } }])
  await decide(admitted)
  backbone.value(KEY, '1')
  expect((await second.received()).map(({ type, code }) => code ?? type)).toEqual(['subscribed', 'value'])
  // Not by the one that was refused, when it comes again; what that is good for beside this key is not known.
  const again = await clientWith(first.token)
  await pass(KEEP_MS + 250)
  again.send({ type: 'get', id: 2, key: 'doc:2' })
  expect(backbone.questions).toMatchObject([
    { key: `${KEY}|${viewerOf('ann')}`, credentials: { authorization: `Bearer ${second.token}` } },
    { key: `doc:2|${viewerOf('ann')}`, credentials: { authorization: `Bearer ${first.token}` } },
  ])
})

test('a key that no token of the user may read changes nothing for the others', async () => {
  const { backbone, client, decide, pass } = setup()
  const good = await client('ann', 3_600)
  const dead = await client('ann', 600)
  good.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(admitted)
  good.send({ type: 'get', id: 2, key: 'doc:gone' })
  await decide(refused)
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${dead.token}` } }])
  await decide(refused)
  await pass(KEEP_MS + 250)
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${good.token}` } }])
  await decide(admitted)
  const told = await good.received()
  expect(told.filter(({ code }) => code === 'forbidden')).toMatchObject([{ id: 2, key: 'doc:gone' }])
})

test('of three tokens each is asked with, until one is admitted; what is refused stays so until another comes', async () => {
  const { backbone, client, decide } = setup()
  const ann = await client('ann', 3_600)
  const tokens = [ann.token, (await client('ann', 1_800)).token, (await client('ann', 600)).token]
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  for (const token of tokens) {
    expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${token}` } }])
    await decide(refused)
  }
  expect(await ann.ask({ type: 'get', id: 2, key: KEY })).toMatchObject([
    { type: 'subscribed' },
    { code: 'forbidden', subscribed: false },
    { id: 2, code: 'forbidden' },
  ])
  const fourth = await client('ann', 300)
  // Nobody is told what the others were refused while this one is asked with.
  for (const id of [3, 4]) expect(await ann.ask({ type: 'get', id, key: KEY })).toEqual([])
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${fourth.token}` } }])
  await decide(admitted)
  expect(backbone.calls).toEqual([`get ${KEY}`])
})

test('where the backend refuses both tokens of a user it is not asked each time that they come by turns', async () => {
  const { backbone, client, clientWith, decide } = setup()
  const tokens = [(await client('ann', 3_600)).token, (await client('ann', 60)).token]
  const askedWith: string[] = []
  for (let turns = 0; turns < 10; turns++) {
    const each = await clientWith(tokens[turns % 2])
    each.send({ type: 'get', id: 1, key: KEY })
    while (backbone.questions.length > 0) {
      askedWith.push(backbone.questions[0].credentials.authorization ?? '')
      await decide(refused)
    }
    expect(await each.received()).toMatchObject([{ code: 'forbidden' }])
  }
  expect(new Set(askedWith)).toEqual(new Set(tokens.map(token => `Bearer ${token}`)))
  expect(askedWith.length).toBeLessThanOrEqual(3)
})

test('the backend is never asked with a token that has expired', async () => {
  const { backbone, client, decide, pass } = setup()
  const ann = await client('ann', 5)
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(admitted)
  backbone.value(KEY, '1')
  await ann.received()
  await pass(5_250)
  expect((await ann.received())[0]).toMatchObject({ code: 'token_expired' })
  expect(await ann.ask({ type: 'get', id: 2, key: 'doc:2' })).toMatchObject([{ id: 2, code: 'token_expired' }])
  await pass(KEEP_MS)
  expect(backbone.questions).toEqual([])
})

test('with its first token a session is another viewer: what was decided for the one before ends', async () => {
  const { backbone, connect, decide, token, turn } = setup()
  const client = await connect()
  client.send({ type: 'subscribe', id: 1, keys: [{ key: 'doc:open' }] })
  await decide(admitted)
  backbone.value('doc:open', '1')
  await client.received()
  await authenticate(client, await token('ann'), turn)
  expect(backbone.calls.at(-1)).toBe('unwatch doc:open')
  await decide(refused)
  expect(await client.received()).toMatchObject([{ code: 'forbidden', key: 'doc:open', subscribed: false }])
})

test('an unsubscribe, or the end of the session, ends the wait for a decision', async () => {
  const { backbone, client, decide } = setup()
  const [ann, bob] = [await client('ann'), await client('bob')]
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  ann.send({ type: 'unsubscribe', id: 2, keys: [KEY] })
  bob.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  bob.connection.emit('close', 1000, Buffer.alloc(0))
  await decide(admitted)
  await decide(admitted)
  expect(backbone.calls).toEqual([])
  expect(await ann.received()).toMatchObject([{ type: 'subscribed' }, { type: 'ok' }])
})

test('keys that wait for a decision count among those of the session', async () => {
  const { client } = setup({ keysPerSessionMax: 2 })
  const ann = await client('ann')
  const keys = ['doc:1', 'doc:2', 'doc:3'].map(key => ({ key }))
  expect(await ann.ask({ type: 'subscribe', id: 1, keys })).toMatchObject([
    { type: 'subscribed', keys: [{ key: 'doc:1' }, { key: 'doc:2' }] },
    { code: 'too_many_keys', key: 'doc:3' },
  ])
  ann.send({ type: 'unsubscribe', id: 2, keys: ['doc:1'] })
  expect((await ann.ask({ type: 'subscribe', id: 3, keys: [{ key: 'doc:3' }] })).at(-1)).toMatchObject({
    keys: [{ key: 'doc:3' }],
  })
})

test('after a revocation nothing is asked with the revoked token, and what was decided is asked anew', async () => {
  const { backbone, client, decide, gateway, pass } = setup()
  const first = await client('ann', 300)
  first.send({ type: 'get', id: 1, key: KEY })
  await decide(admitted)
  gateway.revoke({ sub: 'ann', before: nowMs / 1_000 + 1 })
  await pass(2_000)
  const second = await client('ann', 60)
  second.send({ type: 'get', id: 1, key: KEY })
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${second.token}` } }])
})

test('a narrow token is not judged with a broad one of the same user, nor goes by what that was admitted to', async () => {
  const { backbone, clientWith, decide, token } = setup()
  const broad = await clientWith(await token('ann', 3_600, { scope: 'read write' }))
  const narrow = await clientWith(await token('ann', 300, { scope: 'read' }))
  broad.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(admitted)
  narrow.send({ type: 'get', id: 1, key: KEY })
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${narrow.token}` } }])
  await decide(refused)
  expect(await narrow.received()).toMatchObject([{ code: 'forbidden' }])
  // Nor once the other session has ended.
  broad.connection.emit('close', 1000, Buffer.alloc(0))
  expect(await narrow.ask({ type: 'get', id: 2, key: KEY })).toMatchObject([{ id: 2, code: 'forbidden' }])
  narrow.send({ type: 'get', id: 3, key: 'doc:2' })
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${narrow.token}` } }])
  await decide(refused)
  expect(backbone.questions).toEqual([])
})

test('a token that only renews is the same viewer, and one with other claims another, asked about anew', async () => {
  const { backbone, clientWith, decide, token, turn } = setup()
  const ann = await clientWith(await token('ann', 60, { scope: 'read write', sid: '1' }))
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  await decide(admitted)
  backbone.value(KEY, '1')
  await ann.received()
  await authenticate(ann, await token('ann', 120, { scope: 'write read', sid: '2' }), turn)
  expect(backbone.questions).toEqual([])
  const narrow = await token('ann', 180, { scope: 'read' })
  await authenticate(ann, narrow, turn)
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${narrow}` } }])
  backbone.value(KEY, '2')
  expect(await ann.received()).toEqual([])
  await decide(refused)
  expect(await ann.received()).toMatchObject([{ code: 'forbidden', key: KEY, subscribed: false }])
})

test('no question is asked with the token of a session that has ended, nor with one that a session has renewed', async () => {
  const { backbone, client, clientWith, decide, token, turn } = setup()
  const gone = await client('ann', 3_600)
  const ann = await clientWith(await token('ann', 600))
  gone.connection.emit('close', 1000, Buffer.alloc(0))
  ann.send({ type: 'get', id: 1, key: KEY })
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${ann.token}` } }])
  await decide(admitted)
  const renewed = await token('ann', 300)
  await authenticate(ann, renewed, turn)
  ann.send({ type: 'get', id: 2, key: 'doc:2' })
  expect(backbone.questions).toMatchObject([{ credentials: { authorization: `Bearer ${renewed}` } }])
})

test('where the backend decides otherwise, it is asked again at once, and no node answers with what it said before', async () => {
  const { gateway, client, decide, backbone, pass } = setup()
  const [ann, bob] = [await client('ann'), await client('bob')]
  for (const one of [ann, bob]) {
    one.send({ type: 'subscribe', id: 1, keys: [KEY] })
    await decide(admitted)
    await one.received()
  }
  expect(gateway.askAgain({ user: 'ann', key: KEY })).toBe(1)
  await pass(250)
  expect(backbone.questions).toHaveLength(1)
  expect(backbone.questions[0].maxAgeMs).toBeLessThanOrEqual(250)
  await decide(refused)
  expect(await ann.received()).toMatchObject([{ code: 'forbidden', key: KEY }])
  expect(await bob.received()).toEqual([])

  // Nothing was known of it here, and a node may know what was.
  expect(gateway.askAgain({ key: 'doc:new' })).toBe(0)
  await pass(100)
  bob.send({ type: 'get', id: 2, key: 'doc:new' })
  await bob.received()
  expect(backbone.questions[0].maxAgeMs).toBe(100)
})

test('a get under way for which the backend says no meanwhile is not answered with the value', async () => {
  const { gateway, client, decide, backbone, pass } = setup()
  const ann = await client('ann')
  for (const id of [1, 2]) ann.send({ type: id === 1 ? 'subscribe' : 'get', id, key: KEY, keys: [KEY] })
  await decide(admitted)
  await ann.received()
  gateway.askAgain({ key: KEY })
  await pass(250)
  await decide(refused)
  backbone.value(KEY, '1')
  expect(await ann.received()).toMatchObject([
    { code: 'forbidden', subscribed: false },
    { code: 'forbidden', id: 2 },
  ])
})
