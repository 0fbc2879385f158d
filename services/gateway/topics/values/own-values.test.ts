// Values that differ per user, from a gateway's doors to its backbone: one entry and one fetch per user and key, with the token
// of that user, for as long as it is valid.
import { inspect } from 'node:util'
import { tokenDigest } from '@keycast/backbone'
import { viewerOf } from '../../access/backend/test-backend.ts'
import { readRule } from '../../access/rule.ts'
import { authenticate, issuers, sign } from '../../access/test-tokens.ts'
import type { Settings } from '../../settings.ts'
import { createTestGateway } from '../../test-support.ts'

const startAtMs = 1_800_000_000_000
const anonymous = readRule({ read: ['own:open', 'tick:*'] }, { user: false, strict: true }).rule
const everyone = readRule({ read: ['own:inbox', 'own:open', 'own:third'] }, { user: true, strict: true }).rule
const KEY = 'own:inbox'
const wire = (user: string, key = KEY) => `${key}|${viewerOf(user)}`
const OPEN = 'own:open|anonymous'

function setup(settings?: Partial<Settings>) {
  const started = createTestGateway({
    startAtMs,
    namespaces: { own: { isPerUser: true, maxAgeMs: 5_000 }, tick: {} },
    policy: { tokens: issuers, anonymous, everyone },
    settings,
  })
  const { connect, turn } = started
  const wallNow = () => startAtMs + started.now() - 1_000_000
  const token = (
    sub: string,
    ttlSeconds = 300,
    more: { jti?: string; keys?: object; claims?: Record<string, unknown> } = {},
  ) => sign({ sub, nowMs: wallNow(), ttlSeconds, ...more })

  const auth = (client: any, given: string) => authenticate(client, given, turn)

  return {
    ...started,
    wallNow,
    token,
    auth,
    /** A client with a token. */
    async client(sub: string, ttlSeconds = 300) {
      const client = await connect()
      const given = await token(sub, ttlSeconds)
      await auth(client, given)
      return { ...client, token: given }
    },
  }
}

test('each user is fetched for with their own token, and sees their own value under the same key', async () => {
  const { backbone, client, wallNow } = setup()
  const [ann, bob] = [await client('ann'), await client('bob')]
  for (const user of [ann, bob]) user.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  expect(backbone.calls).toEqual([`watch ${wire('ann')}`, `watch ${wire('bob')}`])
  expect(backbone.credentials(wire('ann'))).toEqual({
    authorization: `Bearer ${ann.token}`,
    expiresAt: wallNow() + 300_000,
  })
  expect(backbone.credentials(wire('bob'))?.authorization).toBe(`Bearer ${bob.token}`)
  backbone.value(wire('ann'), '"of ann"')
  backbone.value(wire('bob'), '"of bob"')
  expect((await ann.received()).slice(1)).toMatchObject([{ type: 'value', key: KEY, data: 'of ann' }])
  expect((await bob.received()).slice(1)).toMatchObject([{ type: 'value', key: KEY, data: 'of bob' }])
})

test('a user of two tenants has two values, at the same time and after one of the sessions has ended', async () => {
  const { backbone, connect, auth, token } = setup()
  const clientOf = async (tid: string) => {
    const client = await connect()
    await auth(client, await token('ann', 300, { claims: { tid } }))
    client.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
    await client.received()
    return client
  }
  const wireOf = () => backbone.calls.findLast(call => call.startsWith('watch '))?.slice('watch '.length) as string
  const one = await clientOf('1')
  const wireOfOne = wireOf()
  backbone.value(wireOfOne, '"of tenant 1"')
  expect(await one.received()).toMatchObject([{ type: 'value', data: 'of tenant 1' }])
  const two = await clientOf('2')
  expect(wireOf()).not.toBe(wireOfOne)
  backbone.value(wireOf(), '"of tenant 2"')
  expect(await two.received()).toMatchObject([{ type: 'value', data: 'of tenant 2' }])
  expect(await one.received()).toEqual([])
  two.connection.emit('close', 1000, Buffer.alloc(0))
  const again = { type: 'get', id: 2, key: KEY }
  expect((await one.ask(again)).at(-1)).toMatchObject({ id: 2, data: 'of tenant 1' })
  expect((await (await clientOf('1')).ask(again)).at(-1)).toMatchObject({ id: 2, data: 'of tenant 1' })
})

test('all sessions and requests of one user share one value', async () => {
  const { backbone, client } = setup()
  const [one, other] = [await client('ann'), await client('ann', 600)]
  one.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  other.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  other.send({ type: 'get', id: 2, key: KEY })
  expect(backbone.calls).toEqual([`watch ${wire('ann')}`, `get ${wire('ann')}`])
  backbone.value(wire('ann'), '1')
  expect((await one.received()).at(-1)).toMatchObject({ type: 'value', data: 1 })
  expect(await other.received()).toMatchObject([{ type: 'subscribed' }, { type: 'value', id: 2 }, { type: 'value' }])
  expect((await one.ask({ type: 'get', id: 3, key: KEY })).at(-1)).toMatchObject({ type: 'value', id: 3 })
  expect(backbone.calls).toHaveLength(2)
})

test('a version that another user has resumes nothing', async () => {
  const { backbone, client } = setup()
  const [ann, bob] = [await client('ann'), await client('bob')]
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  const version = backbone.value(wire('ann'), '"of ann"')
  bob.send({ type: 'subscribe', id: 1, keys: [{ key: KEY, version }] })
  backbone.value(wire('bob'), '"of bob"')
  expect((await bob.received()).at(-1)).toMatchObject({ type: 'value', data: 'of bob' })
  expect(await bob.ask({ type: 'get', id: 2, key: KEY, version })).toMatchObject([{ type: 'value', data: 'of bob' }])
})

test('all without a token are one viewer, asked for without one', async () => {
  const { backbone, connect } = setup()
  const [one, two] = [await connect(), await connect()]
  one.send({ type: 'get', id: 1, key: 'own:open' })
  two.send({ type: 'get', id: 1, key: 'own:open' })
  expect(backbone.calls).toEqual([`get ${OPEN}`])
  expect(backbone.credentials(OPEN)).toEqual({})
  backbone.value(OPEN, '0')
  for (const client of [one, two]) expect(await client.received()).toMatchObject([{ type: 'value', data: 0 }])
  expect(await one.ask({ type: 'get', id: 2, key: KEY })).toMatchObject([{ code: 'unauthenticated' }])
})

test('an anonymous session that becomes a user sees nothing of before, not even what was on its way', async () => {
  const { backbone, connect, auth, token } = setup()
  const client = await connect()
  client.send({ type: 'subscribe', id: 1, keys: [{ key: 'own:open' }, { key: 'tick:1' }] })
  client.send({ type: 'get', id: 2, key: 'own:open' })
  const before = await auth(client, await token('ann'))
  expect(before).toMatchObject([{ type: 'subscribed' }])
  backbone.value(OPEN, '"of anybody"')
  expect(await client.received()).toEqual([])
  expect(backbone.calls).toContain(`watch ${wire('ann', 'own:open')}`)
  expect(backbone.calls).toContain(`unwatch ${OPEN}`)
  expect(backbone.calls).not.toContain('unwatch tick:1')
  backbone.value(wire('ann', 'own:open'), '"of ann"')
  expect(await client.received()).toMatchObject([
    { type: 'value', id: 2, data: 'of ann' },
    { type: 'value', key: 'own:open', data: 'of ann' },
  ])
})

test('a renewed token is said again for what is watched, and nothing of the value is lost', async () => {
  const { backbone, client, auth, token } = setup()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  backbone.value(wire('ann'), '1')
  await ann.received()
  const renewed = await token('ann', 600)
  expect(await auth(ann, renewed)).toEqual([])
  expect(backbone.calls.at(-1)).toBe(`renewWatch ${wire('ann')}`)
  expect(backbone.credentials(wire('ann'))?.authorization).toBe(`Bearer ${renewed}`)
  backbone.value(wire('ann'), '2')
  expect(await ann.received()).toMatchObject([{ type: 'value', data: 2 }])
})

test('tokens renewed one after the other are said again once a second, the last one at the latest then', async () => {
  const { backbone, client, auth, token, pass } = setup()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  backbone.value(wire('ann'), '1')
  await ann.received()
  for (let n = 1; n <= 5; n++) await auth(ann, await token('ann', 300 + n))
  const renewals = () => backbone.calls.filter(call => call.startsWith('renewWatch')).length
  expect(renewals()).toBe(1)
  await pass(1_000)
  expect(renewals()).toBe(2)
  await pass(5_000)
  expect(renewals()).toBe(2)
})

test('once the token has expired the value goes, and comes back with a renewed one', async () => {
  const { backbone, client, auth, token, pass } = setup()
  const ann = await client('ann', 60)
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  backbone.value(wire('ann'), '1')
  await ann.received()
  await pass(60_000)
  await pass(10_000)
  expect(backbone.credentials(wire('ann'))).toBeUndefined()
  expect(backbone.held(wire('ann'))).toBeUndefined()
  expect(backbone.calls.at(-1)).toBe(`renewWatch ${wire('ann')}`)
  backbone.calls.length = 0
  const told = await ann.received()
  expect(told).toContainEqual(expect.objectContaining({ code: 'token_expired', key: KEY, subscribed: true }))
  expect(told.filter(({ key }) => key === KEY)).toHaveLength(1)
  await auth(ann, await token('ann', 60))
  expect(backbone.calls.at(-1)).toBe(`renewWatch ${wire('ann')}`)
  backbone.value(wire('ann'), '1')
  expect(await ann.received()).toMatchObject([{ type: 'value', key: KEY, data: 1 }])
})

test('a fetcher that finds the token expired has the value dropped here as well', async () => {
  const { backbone, client } = setup()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  backbone.value(wire('ann'), '1')
  await ann.received()
  backbone.failed(wire('ann'), 'token_expired', { retryAfterMs: 1_000 })
  expect(backbone.held(wire('ann'))).toBeUndefined()
  expect(await ann.received()).toMatchObject([{ code: 'token_expired', key: KEY, subscribed: true }])
})

test('a fetcher that found a token expired which is valid here is asked again each 10 s, as long as it is', async () => {
  const { backbone, client, pass } = setup()
  const ann = await client('ann', 60)
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  backbone.value(wire('ann'), '1')
  const isRenewal = (call: string) => call.startsWith('renewWatch')
  const refuse = () => backbone.failed(wire('ann'), 'token_expired', { retryAfterMs: 1_000 })
  refuse()
  await ann.received()
  await pass(9_000)
  expect(backbone.calls.filter(isRenewal)).toEqual([])
  await pass(2_000)
  expect(backbone.calls.filter(isRenewal)).toHaveLength(1)
  refuse()
  await pass(11_000)
  expect(backbone.calls.filter(isRenewal)).toHaveLength(2)
  expect(await ann.received()).toEqual([])
  backbone.value(wire('ann'), '2')
  expect(await ann.received()).toMatchObject([{ type: 'value', key: KEY, data: 2 }])
  await pass(20_000)
  expect(backbone.calls.filter(isRenewal)).toHaveLength(2)
})

test('a user whom the backend refuses loses the subscription and what was held', async () => {
  const { backbone, client } = setup()
  const [ann, bob] = [await client('ann'), await client('bob')]
  for (const user of [ann, bob]) user.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  backbone.value(wire('ann'), '1')
  backbone.value(wire('bob'), '2')
  await ann.received()
  await bob.received()
  backbone.failed(wire('ann'), 'forbidden', { retryAfterMs: undefined })
  expect(await ann.received()).toMatchObject([{ code: 'forbidden', key: KEY, subscribed: false }])
  expect(await bob.received()).toEqual([])
  expect(backbone.calls.at(-1)).toBe(`unwatch ${wire('ann')}`)
  expect(await ann.ask({ type: 'get', id: 2, key: KEY })).toEqual([])
  expect(backbone.calls.at(-1)).toBe(`get ${wire('ann')}`)
  backbone.failed(wire('ann'), 'forbidden', { retryAfterMs: undefined })
  expect(await ann.received()).toMatchObject([{ id: 2, code: 'forbidden', subscribed: false }])
})

test("a user's own value is gone when the last session is and the token has expired, or was revoked", async () => {
  const { gateway, backbone, client, pass } = setup()
  const held = () => gateway.ownValues.stats().ownValues
  const [ann, bob] = [await client('ann', 60), await client('bob', 3_600)]
  for (const user of [ann, bob]) user.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  backbone.value(wire('ann'), '1')
  backbone.value(wire('bob'), '2')
  for (const user of [ann, bob]) user.connection.terminate()
  // The value is kept for a while: the same user may return, on another page.
  expect(held()).toBe(2)
  await pass(61_000)
  expect(backbone.held(wire('ann'))).toBeUndefined()
  expect(held()).toBe(1)
  gateway.revoke({ sub: 'bob', before: startAtMs / 1_000 + 100 })
  expect(backbone.held(wire('bob'))).toBeUndefined()
  expect(held()).toBe(0)
})

test('a revoked token is asked with no more, though the same user goes on with another', async () => {
  const { gateway, backbone, connect, auth, token, turn } = setup()
  const [one, other] = [await connect(), await connect()]
  await auth(one, await token('ann', 3_600, { jti: 'lost' }))
  const kept = await token('ann', 300, { jti: 'kept' })
  await auth(other, kept)
  for (const session of [one, other]) session.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  backbone.value(wire('ann'), '1')
  await other.received()
  gateway.revoke({ jti: 'lost' })
  await turn()
  expect(one.connection.terminated || one.connection.closed !== undefined).toBe(true)
  expect(backbone.credentials(wire('ann'))?.authorization).toBe(`Bearer ${kept}`)
  expect(backbone.calls.at(-1)).toBe(`renewWatch ${wire('ann')}`)
  expect(backbone.held(wire('ann'))).toBeUndefined()
  await other.received()
  backbone.value(wire('ann'), '2')
  expect(await other.received()).toMatchObject([{ type: 'value', data: 2 }])
})

test("a user's value is asked for with another of their tokens where the backend refuses the one valid longest", async () => {
  const { backbone, client } = setup()
  const first = await client('ann', 3_600)
  const second = await client('ann', 300)
  second.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  second.send({ type: 'get', id: 2, key: KEY })
  expect(backbone.credentials(wire('ann'))?.authorization).toBe(`Bearer ${first.token}`)
  backbone.failed(wire('ann'), 'forbidden', { retryAfterMs: undefined })
  expect(backbone.credentials(wire('ann'))?.authorization).toBe(`Bearer ${second.token}`)
  expect(backbone.calls).toContain(`renewWatch ${wire('ann')}`)
  backbone.value(wire('ann'), '1')
  expect(await second.received()).toMatchObject([{ type: 'subscribed' }, { type: 'value', id: 2 }, { type: 'value' }])
  backbone.failed(wire('ann'), 'forbidden', { retryAfterMs: undefined })
  expect(await second.received()).toMatchObject([{ code: 'forbidden', subscribed: false }])
})

test('several keys that one token was refused for are all asked for with the other', async () => {
  const { backbone, client } = setup()
  await client('ann', 3_600)
  const second = await client('ann', 300)
  const keys = [KEY, 'own:open']
  second.send({ type: 'subscribe', id: 1, keys: keys.map(key => ({ key })) })
  for (const key of keys) backbone.failed(wire('ann', key), 'forbidden', { retryAfterMs: undefined })
  for (const key of keys) backbone.value(wire('ann', key), '1')
  expect(await second.received()).toMatchObject([{ type: 'subscribed' }, { type: 'value' }, { type: 'value' }])
})

/** A user's tokens by name, for tests of the choice among them. */
function setupTokens(settings?: Parameters<typeof setup>[0]) {
  const started = setup(settings)
  const { backbone, connect, auth, token } = started
  const names = new Map<string, string>()
  const nameOf = (authorization: string | undefined) => names.get(authorization ?? '')
  return {
    ...started,
    /** A client with a token of its own. */
    async withToken(name: string, ttlSeconds: number) {
      const client = await connect()
      const given = await token('ann', ttlSeconds, { jti: name })
      names.set(`Bearer ${given}`, name)
      await auth(client, given)
      return { ...client, token: given }
    },
    /** The tokens in the wants of a key since the last call. */
    said: (key = KEY) => backbone.said.filter(([each]) => each === wire('ann', key)).map(([, each]) => nameOf(each)),
    /** The backend refuses the token that was said last, or the one given. */
    refuse(key: string = KEY, given?: string) {
      const digest = given === undefined ? {} : { tokenDigest: tokenDigest(`Bearer ${given}`) }
      backbone.failed(wire('ann', key), 'forbidden', { retryAfterMs: undefined, ...digest })
    },
    value: (key = KEY, body = '1') => backbone.value(wire('ann', key), body),
  }
}

const OTHER_KEY = 'own:open'

const isOfToken = ({ code }: any) => code === 'forbidden' || code === 'token_expired'

const subscribe = (key = KEY, id = 1) => ({ type: 'subscribe', id, keys: [{ key }] })

test('a key that no token of the user may read changes nothing for the others', async () => {
  const { withToken, said, refuse, value } = setupTokens()
  const good = await withToken('good', 3_600)
  await withToken('dead', 600)
  good.send(subscribe())
  value()
  good.send(subscribe(OTHER_KEY, 2))
  refuse(OTHER_KEY)
  refuse(OTHER_KEY)
  expect(said(OTHER_KEY)).toEqual(['good', 'dead'])
  const told = await good.received()
  expect(told.filter(({ type }) => type === 'error')).toMatchObject([{ key: OTHER_KEY, code: 'forbidden' }])
  good.send({ type: 'get', id: 3, key: 'own:third' })
  await withToken('better', 7_200)
  expect(said()).toEqual(['good', 'better'])
  expect(said(OTHER_KEY)).toEqual(['good', 'dead'])
})

test('of three tokens all are asked with, the one valid longest first, and the one that is good stays', async () => {
  const { withToken, said, refuse, value, pass } = setupTokens()
  await withToken('revoked', 3_600)
  const good = await withToken('good', 1_800)
  await withToken('dead', 600)
  good.send(subscribe())
  refuse()
  value()
  expect(await good.received()).toMatchObject([{ type: 'subscribed' }, { type: 'value' }])
  refuse()
  value()
  expect(await good.received()).toMatchObject([{ type: 'value' }])
  expect(said()).toEqual(['revoked', 'good', 'dead'])
  await withToken('renewed', 1_900)
  await pass(1_000)
  // A token that works is better than one that is valid longer.
  expect(said()).toEqual(['revoked', 'good', 'dead'])
  refuse()
  expect(said()).toEqual(['revoked', 'good', 'dead', 'renewed'])
  refuse()
  expect(await good.received()).toMatchObject([{ code: 'forbidden', subscribed: false }])
  good.send(subscribe(KEY, 2))
  expect(said().at(-1)).toBe('revoked')
})

test('a session that ends leaves its token to nobody: its user is asked for with that of another session', async () => {
  const { withToken, said, value } = setupTokens()
  const long = await withToken('long', 3_600)
  const short = await withToken('short', 600)
  for (const client of [long, short]) client.send(subscribe())
  value()
  expect(said()).toEqual(['long'])
  await short.received()
  long.connection.terminate()
  expect(said()).toEqual(['long', 'short'])
  // The value is still theirs.
  expect((await short.ask({ type: 'get', id: 2, key: KEY })).at(-1)).toMatchObject({ type: 'value', id: 2 })
})

test('a refusal that comes late is not taken for one of the token that came since', async () => {
  const { withToken, said, refuse, value, backbone, pass } = setupTokens()
  const old = await withToken('old', 300)
  old.send({ type: 'get', id: 1, key: OTHER_KEY })
  const renewed = await withToken('new', 3_600)
  renewed.send(subscribe())
  value()
  await renewed.received()
  refuse(OTHER_KEY)
  expect(said(OTHER_KEY)).toEqual(['old', 'new'])
  value(OTHER_KEY, '"of new"')
  expect(await old.received()).toMatchObject([{ type: 'value', id: 1, data: 'of new' }])
  expect(said()).toEqual(['new'])

  // Nor if the same key was asked for with both tokens, or the two cross on the way.
  old.send({ type: 'get', id: 2, key: 'own:third' })
  old.send(subscribe(OTHER_KEY, 3))
  await withToken('newest', 7_200)
  await pass(1_000)
  expect(said(OTHER_KEY).at(-1)).toBe('newest')
  refuse(OTHER_KEY, renewed.token)
  expect(said(OTHER_KEY).slice(-2)).toEqual(['newest', 'newest'])
  value(OTHER_KEY, '"of newest"')
  expect((await old.received()).at(-1)).toMatchObject({ type: 'value', data: 'of newest' })
  expect(backbone.calls).not.toContain(`unwatch ${wire('ann', OTHER_KEY)}`)
})

test('one session that renewed its token keeps its values when the one before expires, whatever was refused meanwhile', async () => {
  const { withToken, auth, token, refuse, value, pass, backbone } = setupTokens()
  const ann = await withToken('old', 60)
  await auth(ann, await token('ann', 3_600))
  ann.send(subscribe())
  value()
  ann.send(subscribe(OTHER_KEY, 2))
  refuse(OTHER_KEY)
  refuse(OTHER_KEY)
  await ann.received()
  await pass(61_000)
  await pass(10_000)
  expect((await ann.received()).filter(isOfToken)).toEqual([])
  expect(backbone.held(wire('ann'))).toBeDefined()
})

test('a value had with a token that took the place of a refused one is asked for anew when that expires', async () => {
  const { withToken, said, refuse, value, pass, backbone } = setupTokens()
  const ann = await withToken('long', 3_600)
  await withToken('short', 60)
  ann.send(subscribe())
  refuse()
  value()
  await ann.received()
  await pass(61_000)
  await pass(10_000)
  expect(said()).toEqual(['long', 'short', 'long'])
  expect(backbone.held(wire('ann'))).toBeUndefined()
  expect((await ann.received()).filter(isOfToken)).toEqual([])
  refuse()
  expect(await ann.received()).toMatchObject([{ code: 'forbidden', subscribed: false }])
})

test('a fetcher that finds such a token expired is asked with the other one, and no client hears of it', async () => {
  const { withToken, said, refuse, value, pass, backbone } = setupTokens()
  const ann = await withToken('long', 3_600)
  await withToken('short', 65)
  ann.send(subscribe())
  refuse()
  value()
  await ann.received()
  await pass(60_000)
  await pass(6_000)
  expect((await ann.received()).filter(isOfToken)).toEqual([])
  expect(said()).toEqual(['long', 'short'])
  backbone.failed(wire('ann'), 'token_expired', { retryAfterMs: 1_000 })
  expect(said()).toEqual(['long', 'short', 'long'])
  value(KEY, '2')
  expect(await ann.received()).toMatchObject([{ type: 'value', data: 2 }])
})

test('rights that a new token does not cover end the subscription, and with the last one the watch', async () => {
  const { backbone, connect, auth, token } = setup()
  const client = await connect()
  await auth(client, await token('ann', 300, { keys: { read: ['own:a'] } }))
  client.send({ type: 'subscribe', id: 1, keys: [{ key: 'own:a' }] })
  backbone.value(wire('ann', 'own:a'), '1')
  await client.received()
  const told = await auth(client, await token('ann', 600))
  expect(told).toMatchObject([{ code: 'forbidden', key: 'own:a', subscribed: false }])
  expect(backbone.calls).toContain(`unwatch ${wire('ann', 'own:a')}`)
})

test('no door without a viewer reaches a value of one', () => {
  const { gateway } = setup()
  expect(() => gateway.singleFlight.want(KEY)).toThrow('nobody checked')
  expect(() => gateway.singleFlight.want(`tick:1|${viewerOf('ann')}`)).toThrow('nobody checked')
})

test('the token is in nothing that a gateway tells: not in its answers to operators, not in a session written down', async () => {
  const { gateway, backbone, client } = setup()
  const ann = await client('ann')
  ann.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  backbone.value(wire('ann'), '1')
  expect(inspect(gateway, { depth: 20 })).not.toContain(ann.token)
  expect(gateway.ownValues.countOf(KEY)).toBe(1)
})
