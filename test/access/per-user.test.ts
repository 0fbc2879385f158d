// Values that differ per user (`per: user`), with real processes: two users see different values under the same key, never each
// other's, and their tokens go to the backend alone.
import { randomBytes } from 'node:crypto'
import { SignJWT } from 'jose'
import { documentOf, startBackend } from '../support/backend.ts'
import { closeClients, connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import { request, startProxy } from '../support/proxy.ts'
import { PATIENCE, startSystem } from '../support/system.ts'

const JWT_SECRET = randomBytes(48).toString('base64')

const backend = await startBackend()
const inbox = {
  url: `${backend.origin}/inbox/{id}`,
  refresh: '100ms',
  timeout: PATIENCE,
  headers: { 'x-service': 'keycast' },
  per: 'user',
  credentials: 'viewer',
} as const
const system = await startSystem({
  namespaces: {
    inbox,
    quiet: { ...inbox, refresh: 0 },
    slow: { ...inbox, maxAge: '20s', refresh: '20s', timeout: '10s' },
    plain: { url: `${backend.origin}/plain/{id}`, refresh: '100ms' },
  },
  access: {
    anonymous: { read: ['inbox:open', 'plain:*'] },
    everyone: { read: ['inbox:*', 'quiet:*', 'slow:*'] },
    tokens: [{ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] }],
  },
  gateways: 2,
  fetchers: 2,
  env: { JWT_SECRET, LOG_LEVEL: 'debug' },
})
const [gateway, otherGateway] = system.gateways

/** Each user's content, by user and path. */
const revisions = new Map<string, number>()
/** Users that the backend refuses. */
const refused = new Set<string>()

const userOf = (authorization: string | undefined) =>
  authorization === undefined
    ? 'anonymous'
    : JSON.parse(Buffer.from(authorization.split('.')[1], 'base64url').toString()).sub

/** Every answer has the same ETag, as of a backend that makes it of the path alone. */
const serve = (path: string) =>
  backend.on(path, ({ headers }, response) => {
    const user = userOf(headers.authorization)
    if (refused.has(user)) return response.writeHead(403).end()
    const body = `{"of":"${user}",${documentOf(revisions.get(user) ?? 1).slice(1)}`
    return response.writeHead(200, { 'content-type': 'application/json', etag: '"shared"' }).end(body)
  })
for (const path of ['/inbox/a', '/inbox/b', '/inbox/c', '/inbox/d', '/inbox/e', '/inbox/f', '/inbox/open']) serve(path)
for (const path of ['/inbox/many', '/inbox/g']) serve(path)

const signed = (sub: string, expires: number | string = '1h', claims: Record<string, unknown> = {}) =>
  new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(sub)
    .setIssuedAt()
    .setJti(randomBytes(8).toString('hex'))
    .setExpirationTime(expires)
    .sign(Buffer.from(JWT_SECRET))

async function viewer(user: string, { url = gateway.url, token }: { url?: string; token?: string } = {}) {
  const shown = token ?? (await signed(user))
  const client = await connect(url)
  await client.request({ type: 'auth', token: shown })
  return { ...client, token: shown }
}

const asked = (path: string, user: string) =>
  backend.askedFor(path).filter(({ headers }) => userOf(headers.authorization) === user)

afterEach(closeClients)

test("two users see different values under one key, at every door and gateway, and never each other's", async () => {
  const proxy = await startProxy([gateway.port], { args: ['--exempt', '127.0.0.0/8'] })
  const tokens = { ann: await signed('ann'), bob: await signed('bob') }
  for (const user of ['ann', 'bob', 'ann'] as const) {
    const token = tokens[user]
    for (const { url } of [gateway, otherGateway]) {
      const client = await viewer(user, { url, token })
      await client.subscribe(['inbox:a'])
      await client.reaches('inbox:a', 1)
      expect(client.of('inbox:a').data).toMatchObject({ of: user })
      expect(await client.request({ type: 'get', key: 'inbox:a' })).toMatchObject({ data: { of: user } })
    }
    const headers = { authorization: `Bearer ${token}` }
    const direct = await ask(`${gateway.http}/v1/values/inbox:a`, { headers })
    expect(direct.json()).toMatchObject({ of: user })
    expect(direct.headers['cache-control']).toBe('private, no-store')
    const proxied = await request(proxy.url('/v1/values/inbox:a'), { headers })
    expect(JSON.parse(proxied.body)).toMatchObject({ of: user })
    expect(proxied.headers).toMatchObject({ 'cache-control': 'private, no-store', vary: 'Authorization, Cookie' })
  }
  const sent = backend.askedFor('/inbox/a').map(({ headers }) => headers)
  expect(new Set(sent.map(({ authorization }) => authorization))).toEqual(
    new Set([`Bearer ${tokens.ann}`, `Bearer ${tokens.bob}`]),
  )
  expect(sent.every(headers => headers['x-service'] === 'keycast')).toBe(true)
})

test('a user of two tenants sees the value of each, at both gateways, also once the session of the other has ended', async () => {
  backend.on('/inbox/t', ({ headers: { authorization } }, response) => {
    const { tid } = JSON.parse(Buffer.from(`${authorization}`.split('.')[1], 'base64url').toString())
    response.writeHead(200, { 'content-type': 'application/json' }).end(`{"of":"${tid}","revision":1}`)
  })
  // The one that is valid longest is not asked with for the other.
  const tokens = {
    broad: await signed('two', '2h', { tid: 'broad' }),
    narrow: await signed('two', '1h', { tid: 'narrow' }),
  }
  const clients = []
  for (const tid of ['broad', 'narrow'] as const) {
    for (const { url } of [gateway, otherGateway]) {
      const client = await viewer('two', { url, token: tokens[tid] })
      await client.subscribe(['inbox:t'])
      await client.reaches('inbox:t', 1)
      expect(client.of('inbox:t').data).toMatchObject({ of: tid })
      clients.push(client)
    }
  }
  for (const client of clients.slice(0, 2)) client.socket.terminate()
  for (const { url, http } of [gateway, otherGateway]) {
    const late = await viewer('two', { url, token: tokens.narrow })
    expect(await late.request({ type: 'get', key: 'inbox:t' })).toMatchObject({ data: { of: 'narrow' } })
    const polled = await ask(`${http}/v1/values/inbox:t`, { headers: { authorization: `Bearer ${tokens.narrow}` } })
    expect(polled.json()).toMatchObject({ of: 'narrow' })
  }
  for (const client of clients.slice(2)) expect(client.of('inbox:t').data).toMatchObject({ of: 'narrow' })
})

test('tabs and gateways of a user share one fetch for each refresh, and a change reaches that user alone', async () => {
  const [one, other, bob] = [await viewer('ann'), await viewer('ann', { url: otherGateway.url }), await viewer('bob')]
  for (const client of [one, other, bob]) await client.subscribe(['inbox:b'])
  for (const client of [one, other, bob]) await client.reaches('inbox:b', 1)
  const from = performance.now()
  await backend.until(() => asked('/inbox/b', 'ann').filter(({ at }) => at > from).length >= 10, '10 refreshes')
  expect(performance.now() - from).toBeGreaterThan(700)
  revisions.set('ann', 2)
  for (const client of [one, other]) await client.reaches('inbox:b', 2)
  expect(bob.of('inbox:b').data).toMatchObject({ of: 'bob', revision: 1 })
})

test('an answer of 304 to one user confirms the value of that user alone', async () => {
  const [ann, bob] = [await viewer('ann'), await viewer('bob')]
  for (const client of [ann, bob]) await client.subscribe(['inbox:c'])
  for (const client of [ann, bob]) await client.reaches('inbox:c', 1)
  for (const user of ['ann', 'bob']) {
    await backend.until(
      () => asked('/inbox/c', user).some(({ headers }) => headers['if-none-match'] === '"shared"'),
      'a conditional request',
    )
    expect(asked('/inbox/c', user)[0].headers['if-none-match']).toBeUndefined()
  }
  backend.on('/inbox/c', (_, response) => response.writeHead(304, { etag: '"shared"' }).end())
  const late = await viewer('bob', { url: otherGateway.url })
  await late.subscribe(['inbox:c'])
  await late.reaches('inbox:c', 1)
  expect(late.of('inbox:c').data).toMatchObject({ of: 'bob' })
  expect(ann.of('inbox:c').data).toMatchObject({ of: 'ann' })
})

test('an anonymous session is asked for without a token, and sees its own value once it is a user', async () => {
  const client = await connect(gateway.url)
  await client.subscribe(['inbox:open'])
  await client.reaches('inbox:open', 1)
  expect(client.of('inbox:open').data).toMatchObject({ of: 'anonymous' })
  await client.request({ type: 'auth', token: await signed('cleo') })
  await client.until(() => client.of('inbox:open').data.of === 'cleo', 'the own value')
  expect(await client.request({ type: 'auth', token: await signed('dora') })).toMatchObject({ code: 'other_user' })
  expect(client.of('inbox:open').data).toMatchObject({ of: 'cleo' })
})

test('a renewed token replaces the one before it at the backend', async () => {
  const ann = await viewer('eve', { token: await signed('eve', '10m') })
  await ann.subscribe(['inbox:d'])
  await ann.reaches('inbox:d', 1)
  const renewed = await signed('eve', '2h')
  await ann.request({ type: 'auth', token: renewed })
  await backend.until(
    () => asked('/inbox/d', 'eve').at(-1)?.headers.authorization === `Bearer ${renewed}`,
    'the new token',
  )
  revisions.set('eve', 2)
  await ann.reaches('inbox:d', 2)
  expect(ann.of('inbox:d').error).toBeUndefined()
})

test('an expired token is sent to nobody; the value comes back with the next one', async () => {
  const client = await viewer('finn')
  await client.subscribe(['inbox:e'])
  await client.reaches('inbox:e', 1)
  let token = ''
  await eventually(async () => {
    token = await signed('finn', Math.ceil(Date.now() / 1_000) + 2)
    return (await client.request({ type: 'auth', token })).type === 'authed'
  }, 'a token being shown before it expires')
  await client.until(() => client.of('inbox:e').error?.code === 'token_expired', 'being told')
  const before = asked('/inbox/e', 'finn')
  const expiresAt = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString()).exp * 1_000
  expect(Date.now()).toBeGreaterThanOrEqual(expiresAt)
  expect(await client.request({ type: 'get', key: 'inbox:e' })).toMatchObject({ code: 'token_expired' })
  expect(asked('/inbox/e', 'finn')).toHaveLength(before.length)
  const renewed = await signed('finn')
  revisions.set('finn', 2)
  await client.request({ type: 'auth', token: renewed })
  await client.reaches('inbox:e', 2)
  expect(asked('/inbox/e', 'finn').at(-1)?.headers.authorization).toBe(`Bearer ${renewed}`)
})

test('a user whom the backend refuses is cut off, the others go on', async () => {
  const [gus, hal] = [await viewer('gus'), await viewer('hal')]
  for (const client of [gus, hal]) await client.subscribe(['inbox:f'])
  for (const client of [gus, hal]) await client.reaches('inbox:f', 1)
  refused.add('gus')
  await gus.until(() => gus.of('inbox:f').error?.code === 'forbidden', 'the end')
  expect(gus.of('inbox:f').error).toMatchObject({ subscribed: false })
  expect(await gus.request({ type: 'get', key: 'inbox:f' })).toMatchObject({ code: 'forbidden' })
  revisions.set('hal', 2)
  await hal.reaches('inbox:f', 2)
})

test('once the last session of a user has left, no request of theirs is made any more; a revoked one is cut off', async () => {
  const [ida, jon] = [await viewer('ida'), await viewer('jon')]
  for (const client of [ida, jon]) await client.subscribe(['inbox:g'])
  for (const client of [ida, jon]) await client.reaches('inbox:g', 1)
  ida.socket.terminate()
  const held = async () =>
    (await Promise.all(system.fetchers.map(({ metric }) => metric('keycast_fetcher_user_values')))).reduce(
      (sum, each) => sum + each,
      0,
    )
  await gateway.call('/v1/revoke', { sub: 'jon', before: Math.floor(Date.now() / 1_000) + 100 })
  expect((await jon.gone()).code).toBe(4003)
  // The sessions of the tests before hold theirs.
  const others = await held()
  await eventually(async () => (await held()) <= others, 'the values being let go of')
  const count = () => asked('/inbox/g', 'ida').length + asked('/inbox/g', 'jon').length
  await eventually(async () => {
    const before = count()
    const marker = await viewer('marker')
    await marker.subscribe(['inbox:g'])
    const from = asked('/inbox/g', 'marker').length
    await backend.until(() => asked('/inbox/g', 'marker').length > from + 5, 'five refreshes of another user')
    marker.socket.terminate()
    return count() === before
  }, 'no more requests for those who left')
})

test('a refresh of the key has it asked for of every user who watches it', async () => {
  serve('/inbox/h')
  const clients = [await viewer('kim'), await viewer('lea', { url: otherGateway.url })]
  for (const client of clients) await client.subscribe(['quiet:h'])
  for (const client of clients) await client.reaches('quiet:h', 1)
  for (const user of ['kim', 'lea']) revisions.set(user, 2)
  await gateway.refresh(['quiet:h'])
  for (const client of clients) await client.reaches('quiet:h', 2)
  expect(clients.map(client => client.of('quiet:h').data.of)).toEqual(['kim', 'lea'])
})

test("a refresh that names a user has that user's value asked for alone", async () => {
  serve('/inbox/n')
  const clients = [await viewer('pam'), await viewer('pam', { url: otherGateway.url }), await viewer('quin')]
  for (const client of clients) await client.subscribe(['quiet:n'])
  for (const client of clients) await client.reaches('quiet:n', 1)
  for (const user of ['pam', 'quin']) revisions.set(user, 2)
  await gateway.refresh(['quiet:n'], ['pam'])
  for (const client of clients.slice(0, 2)) await client.reaches('quiet:n', 2)
  expect([asked('/inbox/n', 'pam').length, asked('/inbox/n', 'quin').length]).toEqual([2, 1])
})

test('300 users of one key: each is asked for once, and sees their own', async () => {
  const users = Array.from({ length: 300 }, (_, i) => `user-${i}`)
  const tokens = await Promise.all(users.map(user => signed(user)))
  for (let next = 0; next < users.length; next += 50) {
    const answers = users.slice(next, next + 50).map(async (user, i) => {
      const headers = { authorization: `Bearer ${tokens[next + i]}` }
      const answer = await ask(`${gateway.http}/v1/values/slow:many`, { headers })
      return { user, got: (answer.json() as any).of }
    })
    for (const { user, got } of await Promise.all(answers)) expect(got).toBe(user)
  }
  expect(backend.askedFor('/inbox/many')).toHaveLength(300)
})

test('a fetcher that is killed loses nothing: the other node has the tokens from the gateways', async () => {
  serve('/inbox/i')
  const clients = [await viewer('mia'), await viewer('ned'), await viewer('ola')]
  for (const client of clients) await client.subscribe(['inbox:i'])
  for (const client of clients) await client.reaches('inbox:i', 1)
  const [fetcher] = system.fetchers
  await fetcher.process.kill()
  for (const user of ['mia', 'ned', 'ola']) revisions.set(user, 2)
  for (const client of clients) await client.reaches('inbox:i', 2)
  expect(clients.map(client => client.of('inbox:i').data.of)).toEqual(['mia', 'ned', 'ola'])
  await system.startFetcher(fetcher.ports)
})

test('no token is in any log, metric or answer to operators', async () => {
  const ann = await viewer('ann')
  await ann.subscribe(['inbox:a'])
  await ann.reaches('inbox:a', 1)
  const told = JSON.stringify([
    ...system.gateways.map(({ process }) => process.log()),
    ...system.fetchers.map(({ process }) => process.log()),
    await gateway.inspect('inbox:a'),
    (await ask(`${gateway.internal}/metrics`)).body.toString(),
  ])
  expect(told).toContain('usersHeld')
  expect(told).not.toMatch(/eyJ[A-Za-z0-9_-]+\.eyJ/)
  expect(told).not.toMatch(/inbox:a\|[A-Za-z0-9_-]{43}/)
})
