import { readRule } from '../access/rule.ts'
import { issuers, sign } from '../access/test-tokens.ts'
import { createTestGateway } from '../test-support.ts'

const startAtMs = 1_800_000_000_000
const nobody = readRule({}, { user: false, strict: true }).rule
const keys = { read: ['tick:*'] }

/** Not a number of turns: signatures are checked beside the loop, which may turn thousands of times meanwhile. */
const GIVE_UP_MS = 100_000

function setup(given?: Parameters<typeof createTestGateway>[0]) {
  return createTestGateway({ startAtMs, ...given, policy: { tokens: issuers, anonymous: nobody, ...given?.policy } })
}

type Client = Awaited<ReturnType<ReturnType<typeof setup>['connect']>>

/** @returns what comes once something does */
async function until(client: Client): Promise<any[]> {
  for (const endsAt = performance.now() + GIVE_UP_MS; performance.now() < endsAt; ) {
    const messages = await client.received()
    if (messages.length > 0) return messages
  }
  throw new Error('nothing came')
}

async function auth(client: Client, wanted?: Partial<Parameters<typeof sign>[0]>) {
  client.send({ type: 'auth', id: 1, token: await sign({ nowMs: startAtMs, keys, ...wanted }) })
  return until(client)
}

test('where nothing is open to anybody, a session may only send auth and ping until it was accepted', async () => {
  const { connect, backbone } = setup()
  const client = await connect()
  for (const message of [
    { type: 'get', id: 2, key: 'tick:1' },
    { type: 'get', id: 2, key: 'no key' },
    { type: 'subscribe', id: 2, keys: ['tick:1'] },
    { type: 'unsubscribe', id: 2, keys: ['tick:1'] },
  ]) {
    expect(await client.ask(message)).toMatchObject([{ type: 'error', id: 2, code: 'unauthenticated' }])
  }
  expect(await client.ask({ type: 'ping' })).toMatchObject([{ type: 'pong' }])
  expect(await auth(client)).toEqual([{ type: 'authed', id: 1, user: 'ann', expiresInMs: 60_000 }])
  client.send({ type: 'get', key: 'tick:1' })
  expect(backbone.calls).toEqual(['get tick:1'])
})

test('what a session pays for is charged to its user once it has one', async () => {
  const { connect, backbone, gateway } = setup({
    policy: { anonymous: readRule(keys, { user: false, strict: true }).rule },
  })
  const client = await connect()
  await client.ask({ type: 'subscribe', id: 2, keys: ['tick:1'] })
  expect(gateway.waits.peek('tick:1')?.holder?.payer).toMatch(/^g\./)
  await auth(client)
  expect(gateway.waits.peek('tick:1')?.holder?.payer).toMatch(/^u/)
  expect(backbone.calls).toContain('renewWatch tick:1')
})

test('one that sends no auth in time is closed with 4001; one whose token is being checked is not', async () => {
  const { connect, pass } = setup()
  const [silent, refused, prompt] = [await connect(), await connect(), await connect()]
  await pass(4_000)
  refused.send({ type: 'auth', token: 'garbage' })
  expect(await until(refused)).toMatchObject([{ code: 'token_refused' }])
  await auth(prompt)
  await pass(1_000)
  expect(silent.connection.closed?.code).toBe(4001)
  expect(refused.connection.closed?.code).toBe(4001)
  expect(prompt.connection.closed).toBeUndefined()
})

test('one that may do nothing yet cannot make the gateway read more than 16 KiB', async () => {
  const { connect, turn } = setup()
  const client = await connect()
  const token = 'x'.repeat(8_000)
  for (let n = 0; n < 3; n++) client.send({ type: 'auth', token })
  await turn()
  expect(client.connection.closed?.code).toBe(4001)
})

test('a session is told once that its token expired, and is closed 25 s later', async () => {
  const { connect, pass } = setup()
  const client = await connect()
  await auth(client)
  await pass(59_000)
  expect(await client.received()).toEqual([])
  await pass(1_000)
  expect(await client.received()).toMatchObject([{ type: 'error', code: 'token_expired' }])
  await pass(24_000)
  expect(await client.received()).toEqual([])
  expect(client.connection.closed).toBeUndefined()
  await pass(1_000)
  expect(client.connection.closed?.code).toBe(4001)
})

test('for those 25 s it keeps what it had: changes come, and it may ask for more', async () => {
  const { connect, pass, backbone } = setup()
  const client = await connect()
  await auth(client)
  await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  await pass(60_000)
  expect(await client.received()).toContainEqual(expect.objectContaining({ code: 'token_expired' }))
  await pass(24_000)
  await client.received()
  backbone.value('tick:1', '1')
  expect(await client.received()).toMatchObject([{ type: 'value', key: 'tick:1' }])
  expect(await client.ask({ type: 'subscribe', id: 2, keys: ['tick:2'] })).toMatchObject([{ type: 'subscribed' }])
  expect(await client.ask({ type: 'subscribe', id: 3, keys: ['other:2'] })).toMatchObject([
    { type: 'subscribed', keys: [] },
    { code: 'forbidden' },
  ])
})

test('renewed within those 25 s it goes on, and is told again when the next token expires', async () => {
  const { connect, pass, gateway } = setup()
  const client = await connect()
  await auth(client)
  await client.ask({ type: 'subscribe', keys: ['tick:1'] })
  await pass(60_000)
  await client.received()
  expect(await auth(client, { nowMs: startAtMs + 60_000 })).toMatchObject([{ type: 'authed', expiresInMs: 60_000 }])
  await pass(59_000)
  expect(client.connection.closed).toBeUndefined()
  expect(gateway.values.describe('tick:1').subscribers).toBe(1)
  await pass(1_000)
  expect(await client.received()).toContainEqual(expect.objectContaining({ code: 'token_expired' }))
})

test('renewal ends the subscriptions that the new token does not cover, and no other', async () => {
  const { connect, backbone } = setup()
  const client = await connect()
  await auth(client)
  await client.ask({ type: 'subscribe', keys: ['tick:1', 'tick:2'] })
  expect(await auth(client, { keys: { read: ['tick:1'] } })).toMatchObject([
    { type: 'authed' },
    { type: 'error', key: 'tick:2', code: 'forbidden' },
  ])
  backbone.value('tick:1', '1')
  backbone.value('tick:2', '2')
  expect(await client.received()).toMatchObject([{ type: 'value', key: 'tick:1' }])
  expect(backbone.calls).toContain('unwatch tick:2')
})

test('a renewal costs as much more as there are keys whose rights it has looked at again', async () => {
  const { connect } = setup({ settings: { requestsPerSecondMax: 10 } })
  const client = await connect()
  await auth(client)
  await client.ask({ type: 'subscribe', keys: Array.from({ length: 100 }, (_, n) => `tick:${n}`) })
  expect(await client.ask({ type: 'ping', id: 2 })).toMatchObject([{ type: 'pong', id: 2 }])
  expect(await auth(client, { ttlSeconds: 600 })).toMatchObject([{ type: 'authed' }])
  expect(await client.ask({ type: 'ping', id: 3 })).toMatchObject([{ type: 'error', id: 3, code: 'rate_limited' }])
})

test('a renewal ends no session, however many keys it has', async () => {
  const { connect, pass } = setup({ settings: { requestsPerSecondMax: 10 } })
  const client = await connect()
  await auth(client)
  await client.ask({ type: 'subscribe', keys: Array.from({ length: 500 }, (_, n) => `tick:${n}`) })
  await pass(1_000)
  expect(await auth(client, { ttlSeconds: 600 })).toMatchObject([{ type: 'authed' }])
  await pass(1_000)
  expect(await client.ask({ type: 'ping', id: 3 })).toMatchObject([{ type: 'pong', id: 3 }])
})

test('a session belongs to one user: a token of another is refused, and what it had stays', async () => {
  const { connect } = setup()
  const client = await connect()
  await auth(client)
  expect(await auth(client, { sub: 'bob' })).toMatchObject([{ type: 'error', id: 1, code: 'other_user' }])
  expect(await client.ask({ type: 'subscribe', id: 2, keys: ['tick:1'] })).toMatchObject([{ type: 'subscribed' }])
})

test('of two under way the later wins, and they are answered in their order', async () => {
  const { connect } = setup()
  const client = await connect()
  const [few, many] = await Promise.all(
    [{ read: ['tick:1'] }, keys].map(granted => sign({ nowMs: startAtMs, keys: granted })),
  )
  client.send({ type: 'auth', id: 'many', token: many })
  client.send({ type: 'auth', id: 'few', token: few })
  const answers = await until(client)
  while (answers.length < 2) answers.push(...(await until(client)))
  expect(answers.map(({ id }) => id)).toEqual(['many', 'few'])
  expect(await client.ask({ type: 'get', id: 3, key: 'tick:2' })).toMatchObject([{ id: 3, code: 'forbidden' }])
})

test('more than a few at once are refused: they would only wait for each other', async () => {
  const { connect } = setup()
  const client = await connect()
  const token = await sign({ nowMs: startAtMs })
  for (let id = 0; id < 5; id++) client.send({ type: 'auth', id, token })
  const [first] = await until(client)
  expect(first).toMatchObject({ type: 'error', id: 4, code: 'too_many_waiting' })
})

test('a revoked user is cut off at once, with all sessions; other users go on', async () => {
  const { connect, gateway, backbone, turn } = setup()
  const [tab, otherTab, bob] = [await connect(), await connect(), await connect()]
  await auth(tab)
  await auth(otherTab, { jti: 'j' })
  await auth(bob, { sub: 'bob' })
  await tab.ask({ type: 'subscribe', keys: ['tick:1'] })
  backbone.value('tick:1', '"secret"')
  expect(gateway.revoke({ sub: 'ann', before: startAtMs / 1_000 + 1 })).toEqual({ outcome: 'added', sessions: 2 })
  await turn()
  expect(tab.connection.closed?.code).toBe(4003)
  expect(otherTab.connection.closed?.code).toBe(4003)
  expect(bob.connection.closed).toBeUndefined()
  expect(await tab.received()).toEqual([])
  expect(await auth(await connect())).toMatchObject([{ code: 'token_refused' }])
  expect(await auth(await connect(), { nowMs: startAtMs + 1_000 })).toMatchObject([{ type: 'authed' }])
})

test('a token revoked while it is being checked gives nothing', async () => {
  const { connect, gateway } = setup()
  const client = await connect()
  client.send({ type: 'auth', token: await sign({ nowMs: startAtMs, jti: 'j' }) })
  gateway.revoke({ jti: 'j' })
  expect(await until(client)).toMatchObject([{ code: 'token_refused' }])
})

test('what anybody may do, an anonymous session does; with a token it may do that, too', async () => {
  const open = readRule({ read: ['tick:open'] }, { user: false, strict: true }).rule
  const { connect, pass, backbone } = setup({ policy: { anonymous: open } })
  const client = await connect()
  await client.ask({ type: 'subscribe', keys: ['tick:open'] })
  await pass(10_000)
  expect(client.connection.closed).toBeUndefined()
  await client.received()
  expect(await auth(client, { keys: { read: ['tick:mine'] } })).toMatchObject([{ type: 'authed' }])
  await client.ask({ type: 'subscribe', keys: ['tick:mine'] })
  for (const key of ['tick:open', 'tick:mine']) backbone.value(key, '1')
  expect((await client.received()).map(({ key }) => key)).toEqual(['tick:open', 'tick:mine'])
})

test('keys that sessions took before they had a user count for the user: no more than those of four sessions', async () => {
  const { connect, pass } = setup({
    policy: { anonymous: readRule({ read: ['tick:*'] }, { user: false, strict: true }).rule },
    settings: { keysPerSessionMax: 10 },
  })
  const answers = []
  for (let n = 0; n < 6; n++) {
    const client = await connect()
    await client.ask({ type: 'subscribe', keys: Array.from({ length: 9 }, (_, key) => `tick:${key}`) })
    const [answer] = await auth(client)
    answers.push(answer.code ?? answer.type)
    await pass(1_000)
  }
  expect(answers).toEqual([...Array(4).fill('authed'), 'rate_limited', 'rate_limited'])
})

test('500 sessions renew at once, and none misses a change meanwhile', async () => {
  const SESSIONS = 500
  const { gateway, connect, backbone, turn } = setup()
  const tokens = await Promise.all(
    Array.from({ length: SESSIONS }, (_, n) => sign({ nowMs: startAtMs, sub: `user-${n}`, keys })),
  )
  const next = await Promise.all(
    Array.from({ length: SESSIONS }, (_, n) => sign({ nowMs: startAtMs, sub: `user-${n}`, keys, ttlSeconds: 600 })),
  )
  const clients: Client[] = []
  for (const token of tokens) {
    const client = await connect('', '', { peer: { address: `10.0.${clients.length}`, isNamed: true } })
    client.send({ type: 'auth', token })
    clients.push(client)
  }
  const isSubscribed = () => gateway.values.describe('tick:1').subscribers === SESSIONS
  // Without a pause most turns would find nothing new, and take the CPU time of the checks.
  const someChecked = () => new Promise(resolve => setTimeout(resolve, 20))
  while (!isSubscribed()) {
    await someChecked()
    await turn()
    for (const client of clients) {
      const isAuthed = client.connection.read().some(({ type }) => type === 'authed')
      if (isAuthed) client.send({ type: 'subscribe', keys: ['tick:1'] })
    }
  }
  await turn()
  for (const client of clients) client.connection.read()

  for (const [n, client] of clients.entries()) client.send({ type: 'auth', token: next[n] })
  const seen: { changes: number[]; authed: number }[] = clients.map(() => ({ changes: [], authed: 0 }))
  let change = 0
  while (change < 20 || seen.some(({ authed }) => authed === 0)) {
    change++
    backbone.value('tick:1', String(change))
    await someChecked()
    await turn()
    for (const [n, client] of clients.entries()) {
      for (const message of client.connection.read()) {
        if (message.type === 'authed') seen[n].authed++
        else seen[n].changes.push(message.data)
      }
    }
  }
  const all = Array.from({ length: change }, (_, n) => n + 1)
  const others = seen.filter(({ changes, authed }) => authed !== 1 || String(changes) !== String(all))
  expect(others).toEqual([])
}, 300_000)
