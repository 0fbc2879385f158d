// Every door against every kind of token: what is wrong is refused and counted, and nobody learns which keys exist.
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createMemoryRooms } from '@keycast/backbone/memory'
import type { Policy } from './access/policy-file.ts'
import { readRule } from './access/rule.ts'
import { authenticate, badTokens, issuers, sign } from './access/test-tokens.ts'
import { createTestApp } from './doors/http/test-support.ts'
import type { Lasting } from './gate/gate.ts'
import type { Settings } from './settings.ts'
import { authorizeKept, createTestGateway } from './test-support.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const nowMs = 1_800_000_000_000

/** Not a number of turns: signatures are checked beside the loop, which may turn thousands of times meanwhile. */
const GIVE_UP_MS = 30_000

const rule = (written: unknown, user = false) => readRule(written, { user, strict: true }).rule

const KEEP_MS = 10_000

/** A backend decides, too. */
const authorize = authorizeKept(KEEP_MS)

function start(policy?: Partial<Policy>, settings?: Partial<Settings>, decides: { authorize?: typeof authorize } = {}) {
  const journal = createMemoryRooms()
  const testGateway = createTestGateway({
    startAtMs: nowMs,
    namespaces: { tick: decides, user: {} },
    rooms: { room: { members: 'named', ...decides } },
    journal,
    settings,
    policy: {
      tokens: issuers,
      anonymous: rule({ read: ['tick:open'] }),
      everyone: rule({ read: ['user:{sub}'] }, true),
      cookie: 'session',
      ...policy,
    },
  })
  const { gateway, backbone } = testGateway
  /** Only for tests that come over HTTP: its routes take more time than all else here. */
  let listening: Promise<number> | undefined
  const createApp = () => {
    const app = createTestApp(gateway)
    cleanUps.push(() => app.close())
    return app
  }
  async function listen() {
    const app = createApp()
    gateway.attach(app.server)
    await app.listen({ host: '127.0.0.1', port: 0 })
    return (app.server.address() as AddressInfo).port
  }
  gateway.revoke({ sub: 'mallory', before: nowMs / 1_000 + 3_600 })
  backbone.calls.length = 0

  const get = async (path: string, headers: Record<string, string> = {}) => {
    listening ??= listen()
    const sent = httpRequest({ port: await listening, path, headers, agent: false })
    sent.end()
    const [response] = await Promise.race([once(sent, 'response'), once(sent, 'upgrade')])
    if (response.statusCode === 101) {
      response.socket.destroy()
      return { status: 101, headers: response.headers, body: '' }
    }
    return { status: response.statusCode, headers: response.headers, body: await text(response) }
  }
  const upgrade = (headers: Record<string, string>) =>
    get('/ws', {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      ...headers,
    })
  return { ...testGateway, journal, createApp, get, upgrade }
}

type Started = ReturnType<typeof start>

/** Doors at which a token is shown with the request. */
const requests: Record<string, (started: Started, token: string) => ReturnType<Started['get']>> = {
  'upgrade, header': ({ upgrade }, token) => upgrade({ authorization: `Bearer ${token}` }),
  'upgrade, cookie': ({ upgrade }, token) => upgrade({ cookie: `session=${token}` }),
  'GET /v1/values, header': ({ get }, token) => get('/v1/values/tick:mine', { authorization: `Bearer ${token}` }),
  'GET /v1/values, cookie': ({ get }, token) => get('/v1/values/tick:mine', { cookie: `session=${token}` }),
  'GET /v1/messages, header': ({ get }, token) => get('/v1/messages/room:mine', { authorization: `Bearer ${token}` }),
  'GET /v1/messages, cookie': ({ get }, token) => get('/v1/messages/room:mine', { cookie: `session=${token}` }),
}

describe.each(Object.entries(requests))('%s', (_, ask) => {
  test.each(Object.entries(badTokens))('a token that is %s', async (_, make) => {
    const started = start()
    const token = await make(nowMs)
    const { status, headers, body } = await ask(started, token)
    expect(status).toBe(401)
    expect(headers['www-authenticate']).toBe('Bearer error="invalid_token"')
    expect(body).toContain('the token was refused')
    if (token) expect(body).not.toContain(token)
    expect(sum(started.gateway.counts.tokensRefused)).toBe(1)
    expect(sum(started.gateway.counts.tokensAccepted)).toBe(0)
    expect(started.backbone.calls).toEqual([])
  })
})

describe.each(['first message', 'renewal'])('auth as %s', kind => {
  test.each(Object.entries(badTokens))('a token that is %s', async (_, make) => {
    const { connect, gateway, backbone } = start()
    const client = await connect()
    if (kind === 'renewal') await authed(client, await sign({ nowMs }))
    const token = await make(nowMs)
    expect(await authed(client, token)).toEqual([
      { type: 'error', id: 7, code: 'token_refused', message: 'the token was refused' },
    ])
    expect(sum(gateway.counts.tokensRefused)).toBe(1)
    const [{ code }] = await client.ask({ type: 'get', key: 'tick:mine' })
    expect(code).toBe(kind === 'renewal' ? 'forbidden' : 'unauthenticated')
    expect(backbone.calls).toEqual([])
    // It is no reason to lose what the session had.
    client.send({ type: 'get', key: 'tick:open' })
    expect(backbone.calls).toEqual(['get tick:open'])
  })
})

const doors: Record<string, (started: Started, key: string, token?: string) => Promise<unknown>> = {
  get: (started, key, token) => overSocket(started, { type: 'get', id: 1, key }, token),
  subscribe: (started, key, token) => overSocket(started, { type: 'subscribe', id: 1, keys: [key] }, token),
  'GET /v1/values': (started, key, token) => overHttp(started, `/v1/values/${key}`, token),
}

describe.each(Object.entries(doors))('%s', (_, ask) => {
  test.each([
    ['without a token', undefined, 'unauthenticated'],
    ['with a token for other keys', { read: ['tick:mine'] }, 'forbidden'],
    ['with a token that grants no more than it is', undefined, 'forbidden'],
  ])('a key %s is refused alike, whether it exists or not', async (what, keys, code) => {
    const started = start()
    const token = what === 'without a token' ? undefined : await sign({ nowMs, keys })
    // Cached and watched by one who may: it is there, and fresh.
    const reader = await started.connect()
    await authed(reader, await sign({ nowMs, sub: 'bob', keys: { read: ['tick:there'] } }))
    await reader.ask({ type: 'subscribe', keys: ['tick:there'] })
    started.backbone.value('tick:there', '"secret"')
    await reader.received()
    started.backbone.calls.length = 0

    const [there, ...others] = await Promise.all(
      ['tick:there', 'tick:none', 'nowhere:there', 'tick:there/below'].map(key => ask(started, key, token)),
    )
    expect(JSON.stringify(there)).toContain(code)
    for (const [index, key] of ['tick:none', 'nowhere:there', 'tick:there/below'].entries()) {
      expect(JSON.parse(JSON.stringify(others[index]).replaceAll(key, 'tick:there'))).toEqual(there)
    }
    expect(JSON.stringify([there, others])).not.toContain('secret')
    expect(started.backbone.calls).toEqual([])
    expect(started.gateway.counts.accessRefused).toMatchObject({ [code]: 4 })
  })

  test('each grant is served: to anybody, to every user, by the token', async () => {
    const token = await sign({ nowMs, keys: { read: ['tick:mine'] } })
    for (const [key, shown] of [
      ['tick:open', undefined],
      ['tick:open', token],
      ['user:ann', token],
      ['tick:mine', token],
    ] as const) {
      const started = start()
      const asked = ask(started, key, shown)
      await answerTo(started, key)
      expect(JSON.stringify(await asked)).toContain('good')
    }
  })
})

const roomDoors: Record<string, (started: Started, key: string, token?: string) => Promise<unknown>> = {
  'subscribe to a room': (started, key, token) =>
    overSocket(started, { type: 'subscribe', id: 1, keys: [{ key, position: { epoch: 'E1', seq: 0 } }] }, token),
  history: (started, key, token) => overSocket(started, { type: 'history', id: 1, key, after: 0, limit: 5 }, token),
  publish: (started, key, token) => overSocket(started, { type: 'publish', id: 1, key, data: 'hello' }, token),
  join: (started, key, token) => overSocket(started, { type: 'join', id: 1, key, name: 'ann' }, token),
  'subscribe to who is there': (started, key, token) =>
    overSocket(started, { type: 'subscribe', id: 1, keys: [{ key, presence: true }] }, token),
  'GET /v1/messages': (started, key, token) => overHttp(started, `/v1/messages/${key}`, token),
}

/** Whoever asks there is anonymous, whatever token comes: see doors/wait/wait.test.ts. */
const forAnonymous = ['GET /v1/wait']

/** Messages that reach no key that the session has not. */
const harmless = ['auth', 'ping', 'unsubscribe', 'leave']

test('the doors above are all there are: every message of a client, every path that names a key', async () => {
  const asked = new Set([...Object.keys(doors), ...Object.keys(roomDoors)].map(door => door.split('|')[0]))
  const { gateway, createApp } = start()
  for (const type of Object.keys(gateway.counts.received)) {
    expect({ type, isAsked: asked.has(type) || harmless.includes(type) }).toEqual({ type, isAsked: true })
  }
  const app = createApp()
  await app.ready()
  const paths = [...Object.keys({ ...doors, ...roomDoors }).filter(door => door.startsWith('GET ')), ...forAnonymous]
  for (const path of paths) expect(app.hasRoute({ method: 'GET', url: `${path.slice(4)}/*` })).toBe(true)
  // No other path has a part that a client chooses. OPTIONS asks for no key.
  expect(app.printRoutes().match(/[*:].* \((?!OPTIONS\))/g)).toHaveLength(paths.length)
})

/** What a session may ask for that stands until it ends it. */
const lasting = {
  subscribe: [
    { type: 'subscribe', id: 1, keys: ['tick:1'] },
    { type: 'subscribe', id: 1, keys: [{ key: 'room:1', presence: true }] },
  ],
  join: [{ type: 'join', id: 1, key: 'room:1', name: 'ann' }],
} satisfies Record<Lasting, object[]>

const all = { read: ['*:**'], publish: ['*:**'], join: ['*:**'] }

const answerAs = (verdict: 'admitted' | 'refused') => ({ verdict, ageMs: 0, message: '' })

/** Answers all that the backend is asked. @returns for how many keys and viewers */
async function decide({ backbone, turn }: Started, verdict: 'admitted' | 'refused') {
  for (const endsAt = performance.now() + GIVE_UP_MS; backbone.questions.length === 0; await turn()) {
    if (performance.now() > endsAt) throw new Error('the backend was not asked')
  }
  const questions = backbone.questions.splice(0)
  for (const { resolve } of questions) resolve(answerAs(verdict))
  await turn()
  return questions.length
}

describe.each(Object.entries({ ...doors, ...roomDoors }))('%s, where a backend decides', (door, ask) => {
  const key = door in doors ? 'tick:there' : 'room:there'

  test('nothing is asked for, told or published before its word, nor after a refusal', async () => {
    const started = start({}, {}, { authorize })
    const { journal, backbone } = started
    journal.append({ room: key, messageId: undefined, from: 'bob', data: Buffer.from('"secret"') })
    const asked = ask(started, key, await sign({ nowMs, keys: all }))
    await decide(started, 'refused')
    const answer = JSON.stringify(await asked)
    expect(answer).toContain('forbidden')
    expect(answer).not.toContain('secret')
    expect(backbone.calls).toEqual([])
    expect(journal.append({ room: key, messageId: undefined, from: 'bob', data: Buffer.from('1') })).toMatchObject({
      seq: 2,
    })
  })
})

describe.each(Object.values(lasting).flat())('%j, where a backend decides', message => {
  const [{ key }] = ('keys' in message ? message.keys : [message]).map(each =>
    typeof each === 'string' ? { key: each } : each,
  )
  const over = { type: 'error', key, code: 'forbidden', subscribed: false }

  async function standing() {
    const started = start({}, {}, { authorize })
    const client = await started.connect()
    const renew = async (keys: object, sub?: string) =>
      authenticate(client, await sign({ nowMs, keys, sub, ttlSeconds: 600 }), started.turn)
    await renew(all)
    client.send(message)
    await decide(started, 'admitted')
    await client.received()
    return { ...started, client, renew, started }
  }

  test('each `keep` it is asked again, and a refusal ends it', async () => {
    const { client, pass, started, backbone } = await standing()
    for (const verdict of ['admitted', 'refused'] as const) {
      expect(await client.received()).not.toContainEqual(expect.objectContaining(over))
      await pass(KEEP_MS + 250)
      expect(await decide(started, verdict)).toBe(1)
    }
    expect(await client.received()).toContainEqual(expect.objectContaining(over))
    await pass(3 * KEEP_MS)
    expect(backbone.questions).toEqual([])
  })

  test('a renewal that does not cover it ends it', async () => {
    const { client, renew, pass, backbone } = await standing()
    const told = [...(await renew({})), ...(await client.received())]
    expect(told).toContainEqual(expect.objectContaining(over))
    await pass(3 * KEEP_MS)
    expect(backbone.questions).toEqual([])
  })
})

describe.each(Object.entries(roomDoors))('%s', (_, ask) => {
  test.each([
    ['without a token', undefined, 'unauthenticated'],
    ['with a token for other rooms', { read: ['room:mine'], publish: ['room:mine'] }, 'forbidden'],
    ['with a token that grants no more than it is', undefined, 'forbidden'],
  ])('a room %s is refused alike, whether it exists or not, and nothing is published', async (what, keys, code) => {
    const started = start()
    const token = what === 'without a token' ? undefined : await sign({ nowMs, keys })
    const { journal } = started
    journal.append({ room: 'room:there', messageId: undefined, from: 'bob', data: Buffer.from('"secret"') })
    const names = ['room:there', 'room:none', 'nowhere:there', 'room:there/below']
    const [there, ...others] = await Promise.all(names.map(key => ask(started, key, token)))
    expect(JSON.stringify(there)).toContain(code)
    for (const [index, name] of names.slice(1).entries()) {
      expect(JSON.parse(JSON.stringify(others[index]).replaceAll(name, 'room:there'))).toEqual(there)
    }
    expect(JSON.stringify([there, others])).not.toContain('secret')
    expect(started.gateway.counts.accessRefused).toMatchObject({ [code]: 4 })
    const published = journal.append({ room: 'room:there', messageId: undefined, from: 'bob', data: Buffer.from('1') })
    expect(published).toMatchObject({ seq: 2 })
  })
})

test('a subscription repeated after its rights are gone is refused', async () => {
  const { connect } = start()
  const client = await connect()
  await authed(client, await sign({ nowMs, keys: { read: ['tick:mine'] } }))
  await client.ask({ type: 'subscribe', keys: ['tick:mine'] })
  await authed(client, await sign({ nowMs, keys: { read: ['tick:other'] } }))
  const answers = await client.ask({ type: 'subscribe', id: 2, keys: ['tick:mine'] })
  expect(answers).toMatchObject([
    { type: 'subscribed', keys: [] },
    { id: 2, key: 'tick:mine', code: 'forbidden' },
  ])
})

test('a get that waits while its session is renewed to fewer rights is not answered with the value', async () => {
  const { connect, backbone } = start()
  const client = await connect()
  await authed(client, await sign({ nowMs, keys: { read: ['tick:mine'] } }))
  client.send({ type: 'get', id: 1, key: 'tick:mine' })
  await authed(client, await sign({ nowMs }))
  backbone.value('tick:mine', '"secret"')
  expect(await client.received()).toMatchObject([{ type: 'error', id: 1, key: 'tick:mine', code: 'forbidden' }])
})

test('a token that came with the upgrade is in the welcome, and its user may act at once', async () => {
  const { upgrade, connect, gateway } = start()
  const token = await sign({ nowMs, keys: { read: ['tick:mine'] } })
  for (const headers of [{ authorization: `bearer ${token}` }, { cookie: `other=1; session=${token}` }]) {
    expect(await upgrade(headers as any)).toMatchObject({ status: 101 })
  }
  expect(gateway.counts.tokensAccepted).toEqual({ header: 1, cookie: 1, message: 0 })
  const verified = { user: 'ann', rights: { grants: [] } as any, expiresAtMs: nowMs + 60_000 }
  const from = {
    peer: { address: 'a', isNamed: true },
    verified: { ...verified, issuedAt: 0, jti: undefined },
  }
  expect((await connect('', '', from)).welcome).toMatchObject({ type: 'welcome', user: 'ann', expiresInMs: 60_000 })
})

test('of a header and a cookie the header counts', async () => {
  const { upgrade } = start()
  const cookie = `session=${await sign({ nowMs })}`
  expect((await upgrade({ authorization: 'Bearer garbage', cookie })).status).toBe(401)
})

test('a crowd of bad tokens from one address is told to come later, and costs others nothing', async () => {
  const { upgrade } = start({}, { trustedProxies: '127.0.0.1' })
  const attack = { 'x-forwarded-for': '192.0.2.1', authorization: 'Bearer a.b.c' }
  for (let n = 0; n < 200; n++) expect((await upgrade(attack)).status).toBe(401)
  const refused = await upgrade(attack)
  expect(refused.status).toBe(503)
  expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
  const authorization = `Bearer ${await sign({ nowMs })}`
  expect((await upgrade({ 'x-forwarded-for': '192.0.2.2', authorization })).status).toBe(101)
})

test('a client that leaves as soon as it was let in takes no place', async () => {
  const { upgrade, gateway, turn } = start({}, { sessionsMax: 1 })
  const authorization = `Bearer ${await sign({ nowMs })}`
  expect((await upgrade({ authorization })).status).toBe(101)
  for (const endsAt = performance.now() + GIVE_UP_MS; gateway.notReady() && performance.now() < endsAt; ) await turn()
  expect(gateway.notReady()).toBeUndefined()
})

test('sessions of one user, or of one address, are limited; those of a proxy that names no client are not', async () => {
  const { upgrade, connect } = start({}, { sessionsPerUserMax: 1, sessionsPerAddressMax: 2 })
  const named = { address: '192.0.2.7', isNamed: true }
  await connect('', '', { peer: named })
  await connect('', '', { peer: named })
  expect((await upgrade({ 'x-forwarded-for': '192.0.2.7' })).status).toBe(429)
  expect((await upgrade({ 'x-forwarded-for': '192.0.2.8' })).status).toBe(101)
  for (let n = 0; n < 5; n++) expect((await upgrade({})).status).toBe(101)

  const [one, other] = [await connect(), await connect()]
  expect(await authed(one, await sign({ nowMs }))).toMatchObject([{ type: 'authed' }])
  expect(await authed(other, await sign({ nowMs }))).toMatchObject([{ code: 'rate_limited', retryAfterMs: 5_000 }])
  expect((await upgrade({ authorization: `Bearer ${await sign({ nowMs })}` })).status).toBe(429)
})

async function authed(client: Awaited<ReturnType<Started['connect']>>, token: string): Promise<any[]> {
  client.send({ type: 'auth', id: 7, token })
  return until(client)
}

/** The messages of the next turns, at least one. */
async function until(client: Awaited<ReturnType<Started['connect']>>): Promise<any[]> {
  for (const endsAt = performance.now() + GIVE_UP_MS; performance.now() < endsAt; ) {
    const messages = await client.received()
    if (messages.length > 0) return messages
  }
  throw new Error('nothing came')
}

async function overSocket({ connect }: Started, message: object, token?: string) {
  const client = await connect()
  if (token) await authed(client, token)
  client.send(message)
  const messages = await until(client)
  // A value follows in a later turn, and only where it is granted.
  const [{ type, keys }] = messages
  if (type === 'subscribed' && keys.length > 0 && messages.length === 1) messages.push(...(await until(client)))
  return messages
}

async function overHttp({ get }: Started, path: string, token?: string) {
  const { status, headers, body } = await get(path, token ? { authorization: `Bearer ${token}` } : {})
  const { date, ...others } = headers
  return { status, headers: others, body: JSON.parse(body) }
}

async function answerTo({ backbone, turn }: Started, key: string) {
  for (const endsAt = performance.now() + GIVE_UP_MS; performance.now() < endsAt; ) {
    if (backbone.calls.some(call => call === `get ${key}` || call === `watch ${key}`)) {
      backbone.calls.length = 0
      backbone.value(key, '"good"')
      return
    }
    await turn()
  }
  throw new Error(`${key} was not asked for`)
}

function sum(counter: Record<string, number>) {
  return Object.values(counter).reduce((total, count) => total + count, 0)
}
