import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { readRule } from '../../access/rule.ts'
import { authorizeKept, createPolicy, createTestGateway, readAs } from '../../test-support.ts'
import { closeServed, createTestApp, serve } from '../http/test-support.ts'
import { EDGE_MS, edgeAfter, timeOfEdge } from './cursor.ts'

const gateways: { drain(): unknown }[] = []
afterEach(async () => {
  for (const gateway of gateways.splice(0)) gateway.drain()
  await closeServed()
})

const KEY = 'tick:1'
const ORDER = 1_795_000_000_000
const START_MS = 1_795_000_100_000
const authorize = authorizeKept(1_000)

/** @param beforeEdgeMs of the key, on the wall clock */
async function setup({
  beforeEdgeMs = EDGE_MS / 2,
  settings = {},
  connectionsMax = 1_000,
  unreadBytesMax = 1_000_000,
} = {}) {
  const first = edgeAfter(KEY, START_MS)
  const test = createTestGateway({
    startAtMs: timeOfEdge(KEY, first) - beforeEdgeMs,
    namespaces: { tick: {}, shut: {}, asked: { authorize }, own: { isPerUser: true }, hidden: { authorize } },
    policy: {
      anonymous: readRule({ read: ['tick:*', 'asked:*', 'own:*'] }, { user: false, strict: true }).rule,
    },
    settings,
  })
  const { gateway } = test
  gateways.push(gateway)
  const app = createTestApp({ ...gateway, connectionsMax, unreadBytesMax })
  const get = await serve(app)
  const wait = (after: string, order: number, edge = first, key = KEY, from?: string) =>
    get(`/v1/wait/${key}?after=${after}&cursor=${order}.${edge}`, {
      headers: from === undefined ? {} : { 'x-forwarded-for': from },
    })
  /** Resolves once that many requests wait. */
  const waiting = async (count: number) => {
    while (gateway.waits.waitedKeys.stats().waits !== count) await test.turn()
  }
  /** The key is watched, and its value is there. */
  const begin = async (body = '"v"', order = ORDER) => {
    const early = wait('none', order - 1)
    while (!test.backbone.calls.includes(`watch ${KEY}`)) await test.turn()
    const version = test.backbone.value(KEY, body, { order })
    await early
    return version
  }
  return { ...test, app, first, get, wait, waiting, begin }
}

test('GET /v1/values gives the first cursor, with which the client waits for the next version', async () => {
  const { get, wait, waiting, begin, backbone, first } = await setup()
  const version = await begin()
  const value = await get(`/v1/values/${KEY}`)
  expect(value.headers['keycast-cursor']).toBe(`${ORDER}.${first}`)

  const answer = wait(version, ORDER)
  await waiting(1)
  backbone.value(KEY, '"w"', { order: ORDER + 5 })
  const { status, headers, body } = await answer
  expect([status, String(body)]).toEqual([200, '"w"'])
  expect(headers).toMatchObject({
    'cache-control': 'public, max-age=5',
    'content-type': 'application/json',
    'access-control-allow-origin': '*',
    'access-control-expose-headers': expect.stringContaining('Keycast-Cursor'),
    'keycast-cursor': `${ORDER + 5}.${first}`,
    etag: expect.stringMatching(/^".+"$/),
  })
  expect(headers).not.toHaveProperty('set-cookie')
  expect(headers).not.toHaveProperty('vary')
})

test('all who wait are answered by one change, and the key is watched once', async () => {
  const { wait, waiting, begin, backbone } = await setup()
  const version = await begin()
  const answers = Array.from({ length: 20 }, () => wait(version, ORDER))
  await waiting(20)
  backbone.value(KEY, '"w"', { order: ORDER + 1 })
  expect(new Set((await Promise.all(answers)).map(({ body }) => String(body)))).toEqual(new Set(['"w"']))
  expect(backbone.calls.filter(call => call === `watch ${KEY}`)).toHaveLength(1)
})

test('one connection waits once: its next request, sent before the answer, takes no place', async () => {
  const { app, wait, waiting, begin, first, backbone } = await setup({ connectionsMax: 8 })
  const version = await begin()
  const { port } = app.server.address() as AddressInfo
  const socket = connect({ port, host: '127.0.0.1' })
  const request = `GET /v1/wait/${KEY}?after=${version}&cursor=${ORDER}.${first} HTTP/1.1\r\nhost: x\r\n\r\n`
  socket.write(request.repeat(8))
  await waiting(1)
  const answer = wait(version, ORDER)
  await waiting(2)
  backbone.value(KEY, '"w"', { order: ORDER + 1 })
  expect((await answer).status).toBe(200)
  socket.destroy()
})

test('a change back to a former version is a change', async () => {
  const { wait, waiting, begin, backbone } = await setup()
  await begin('"v"', ORDER)
  const second = backbone.value(KEY, '"w"', { order: ORDER + 1 })
  const answer = wait(second, ORDER + 1)
  await waiting(1)
  backbone.value(KEY, '"v"', { order: ORDER + 2 })
  expect(String((await answer).body)).toBe('"v"')
})

test('a gateway that is behind gives nothing older: it waits until it has what the client has, and more', async () => {
  const { wait, waiting, begin, backbone } = await setup()
  await begin('"v"', ORDER)
  const answer = wait('newer', ORDER + 10)
  await waiting(1)
  backbone.value(KEY, '"w"', { order: ORDER + 10 })
  await waiting(1)
  backbone.value(KEY, '"x"', { order: ORDER + 11 })
  expect(String((await answer).body)).toBe('"x"')
})

test('at the edge a request is answered that nothing changed, with the next edge', async () => {
  const { wait, waiting, begin, pass, first } = await setup({ beforeEdgeMs: 200 })
  const version = await begin()
  const answer = wait(version, ORDER)
  await waiting(1)
  await pass(200)
  const { status, headers, body } = await answer
  expect([status, body.length]).toEqual([204, 0])
  expect(headers).toMatchObject({ 'cache-control': 'public, max-age=1', 'keycast-cursor': `${ORDER}.${first + 1}` })
})

test('an edge that has passed is answered at once', async () => {
  const { wait, begin, first } = await setup()
  const version = await begin()
  const late = await wait(version, ORDER, first - 3)
  expect([late.status, late.headers['keycast-cursor']]).toEqual([204, `${ORDER}.${first}`])
})

test('one far ahead, as of a gateway whose clock is, ends at the next edge here, and a change is told before it', async () => {
  const { wait, waiting, begin, backbone, pass, first } = await setup({ beforeEdgeMs: 200 })
  const version = await begin()
  const unchanged = wait(version, ORDER, first + 180)
  await waiting(1)
  await pass(200)
  const { status, headers } = await unchanged
  expect([status, headers['keycast-cursor']]).toEqual([204, `${ORDER}.${first + 1}`])
  const changed = wait(version, ORDER, first + 180)
  await waiting(1)
  backbone.value(KEY, '"w"', { order: ORDER + 1 })
  expect((await changed).status).toBe(200)
})

test.each([
  ['a query of anything else', `/v1/wait/${KEY}?after=x&cursor=1.2&x=1`, 400],
  ['no query', `/v1/wait/${KEY}`, 400],
  ['a key that no namespace has', '/v1/wait/none:1?after=x&cursor=1.2', 401],
  ['a key that anonymous clients may not read', '/v1/wait/shut:1?after=x&cursor=1.2', 401],
  ['nor, where a backend decides', '/v1/wait/hidden:1?after=x&cursor=1.2', 401],
  ['a key whose readers a backend decides', '/v1/wait/asked:1?after=x&cursor=1.2', 403],
  ["a user's own value", '/v1/wait/own:1?after=x&cursor=1.2', 403],
])('no cache keeps the answer to %s', async (_, path, status) => {
  const { get } = await setup()
  // Nobody is who a header says: a cache would give the answer to all.
  const answer = await get(path, { headers: { authorization: 'Bearer x', cookie: 'session=x' } })
  expect([answer.status, answer.headers['cache-control']]).toEqual([status, 'no-store'])
})

test('a query that was meant as a part of the key is refused with what to write', async () => {
  const { get } = await setup()
  const { status, json } = await get(`/v1/wait/${KEY}?status=open&after=x&cursor=1.2`)
  expect([status, json().code]).toEqual([400, 'bad_request'])
  expect(json().message).toContain('%3F')
})

test('a value that the backend lets nobody store cannot be waited for', async () => {
  const { wait, waiting, backbone } = await setup()
  const answer = wait('x', 1)
  await waiting(1)
  backbone.value(KEY, '"v"', { order: ORDER, store: false })
  expect((await answer).status).toBe(403)
})

test('who waits for a key is told when a backend decides from now on who may read it', async () => {
  const { gateway, wait, waiting, begin, backbone } = await setup()
  const version = await begin()
  const answer = wait(version, ORDER)
  await waiting(1)
  gateway.takeOver(readAs({ tick: { authorize }, asked: { authorize } }), createPolicy())
  const { status, headers, body } = await answer
  expect([status, headers['cache-control'], JSON.parse(String(body)).code]).toEqual([403, 'no-store', 'forbidden'])
  expect(backbone.calls.at(-1)).toBe(`unwatch ${KEY}`)
})

test.each([
  ['not_found', undefined],
  // Nobody is told of the key any more.
  ['unknown_namespace', { retryAfterMs: undefined }],
] as const)('%s is cached for a second, so that those who wait do not come one by one', async (code, more) => {
  const { wait, waiting, backbone } = await setup()
  const answer = wait('x', 1)
  await waiting(1)
  backbone.failed(KEY, code, more)
  const { status, headers } = await answer
  expect([status, headers['cache-control']]).toEqual([404, 'public, max-age=1'])
})

test('a key that the fetcher refuses is asked for again by the next request', async () => {
  const { wait, waiting, backbone } = await setup()
  const refused = wait('x', 1)
  await waiting(1)
  backbone.failed(KEY, 'capacity', { retryAfterMs: undefined })
  const { status, headers } = await refused
  // Said of the one who pays: a cache must not say it to the next.
  expect([status, headers['cache-control']]).toEqual([503, 'no-store'])
  const answer = wait('x', 1)
  await waiting(1)
  backbone.value(KEY, '"v"', { order: ORDER })
  expect((await answer).status).toBe(200)
})

test('one who has no room for a key ends it for no other who waits: the next one pays', async () => {
  const { backbone, wait, waiting } = await setup()
  const answers = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map(from => wait('x', 1, undefined, KEY, from))
  await waiting(3)
  const payer = backbone.payer(KEY)
  backbone.failed(KEY, 'capacity', { retryAfterMs: undefined })
  expect((await Promise.race(answers)).status).toBe(503)
  await waiting(2)
  expect(backbone.payer(KEY)).not.toBe(payer)
  backbone.value(KEY, '"v"', { order: ORDER })
  expect((await Promise.all(answers)).map(({ status }) => status).sort()).toEqual([200, 200, 503])
})

test('whoever leaves answers unread is refused alone: no cache gives the others that answer', async () => {
  const { app, wait, waiting, begin, backbone } = await setup({ unreadBytesMax: 45_000_000 })
  const version = await begin(`"${'x'.repeat(20_000_000)}"`)
  const { port } = app.server.address() as AddressInfo
  const socket = connect({ port, host: '127.0.0.1' })
  socket.write(`GET /v1/values/${KEY} HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 192.0.2.1\r\n\r\n`)
  await once(socket, 'readable')

  const answers = ['192.0.2.1', '192.0.2.2'].map(from => wait(version, ORDER, undefined, KEY, from))
  await waiting(2)
  backbone.value(KEY, `"${'y'.repeat(10_000_000)}"`, { order: ORDER + 1 })
  const [refused, { status }] = await Promise.all(answers)
  expect([refused.status, refused.headers['cache-control'], status]).toEqual([503, 'no-store', 200])
  socket.destroy()
})

test('a value for which a request was woken is not sent where keycast.yaml has closed the key meanwhile', async () => {
  const { gateway, wait, waiting, begin, backbone } = await setup()
  const version = await begin()
  const answer = wait(version, ORDER)
  await waiting(1)
  backbone.value(KEY, '"w"', { order: ORDER + 1 })
  // The session that stands for all who wait is told in this turn, and they in the next.
  await new Promise(resolve => setImmediate(resolve))
  const next = readAs({ tick: {}, shut: {}, asked: { authorize }, own: { isPerUser: true } })
  gateway.takeOver(next, createPolicy({ anonymous: readRule({}, { user: false, strict: true }).rule }))
  expect((await answer).status).toBe(401)
})

test('a fetcher that is late ends no wait: the next value answers it', async () => {
  const { connect, get, wait, waiting, backbone, pass, turn, first } = await setup()
  const got = get(`/v1/values/${KEY}`)
  while (!backbone.calls.includes(`get ${KEY}`)) await turn()
  const version = backbone.value(KEY, '"v"', { order: ORDER })
  await got
  // Nobody watches the key, and its value is old.
  await pass(EDGE_MS / 2)
  const answer = wait(version, ORDER, first + 1)
  await waiting(1)
  const client = await connect()
  client.send({ type: 'subscribe', keys: [{ key: KEY, order: ORDER + 1 }] })
  await pass(5_000)
  expect(await client.received()).toContainEqual(expect.objectContaining({ type: 'error', code: 'fetcher_timeout' }))
  backbone.value(KEY, '"w"', { order: ORDER + 1 })
  expect((await answer).status).toBe(200)
})

test('whoever opens a key pays for it until they are gone, then the next who comes; the others pay nothing', async () => {
  const { gateway, backbone, wait, waiting, first } = await setup()
  const from = (address: string, edge = first) => wait('x', ORDER, edge, KEY, address)
  await from('192.0.2.1', first - 1)
  const payer = backbone.payer(KEY)
  expect(payer).toMatch(/^a[\w-]{11}$/)

  const answers = [from('192.0.2.2')]
  await waiting(1)
  const next = backbone.payer(KEY)
  expect(next).not.toBe(payer)
  expect(backbone.calls).toContain(`renewWatch ${KEY}`)
  expect(gateway.waits.peek(KEY)?.holder?.payer).toBe(next)
  answers.push(from('192.0.2.3'))
  await waiting(2)
  expect(backbone.payer(KEY)).toBe(next)
  void gateway.drain()
  await Promise.all(answers)
})

test('an address opens no more keys than its sessions could; it may wait for those that are open', async () => {
  const { wait, pass, first } = await setup({ settings: { keysPerSessionMax: 2, requestsPerSecondMax: 1 } })
  const ask = async (key: string, from = '192.0.2.1') => (await wait('x', ORDER, first - 3, key, from)).status
  for (let id = 0; id < 20; id++) expect(await ask(`tick:${id}`)).toBe(204)
  expect(await ask('tick:20')).toBe(429)
  expect(await ask('tick:1')).toBe(204)
  expect(await ask('tick:20', '192.0.2.2')).toBe(204)
  expect(await ask('tick:20')).toBe(204)
  // Its allowance is full again, and what it opened is open still.
  await pass(60_000)
  const refused = await wait('x', ORDER, first - 3, 'tick:21', '192.0.2.1')
  expect([refused.status, refused.headers['retry-after']]).toEqual([429, '5'])
})

test('those who wait leave a quarter of all connections to others', async () => {
  const { gateway, get, wait, waiting, begin } = await setup({ connectionsMax: 8 })
  const version = await begin()
  const answers = Array.from({ length: 6 }, () => wait(version, ORDER))
  await waiting(6)
  const { status, headers, body } = await wait(version, ORDER)
  expect([status, headers['cache-control'], JSON.parse(String(body)).code]).toEqual([
    503,
    'public, max-age=1',
    'too_many_waiting',
  ])
  expect((await get(`/v1/values/${KEY}`)).status).toBe(200)
  await gateway.drain()
  await Promise.all(answers)
  expect((await wait(version, ORDER)).status).toBe(204)
})

test('a gateway that drains has answered all who wait, with another cursor than theirs, when it says so', async () => {
  const { gateway, wait, waiting, begin, first } = await setup()
  const version = await begin()
  const answers = [wait(version, ORDER), wait(version, ORDER), wait(version, ORDER)]
  await waiting(3)
  await gateway.drain()
  expect(gateway.waits.waitedKeys.sessions()).toEqual([])
  for (const { status, headers } of await Promise.all(answers)) {
    // A cache keeps the answer for a second: who asked for the same again would be given it again and again.
    expect([status, headers['keycast-cursor'], headers.connection]).toEqual([204, `${ORDER}.${first + 1}`, 'close'])
  }
})

test('a client that goes no longer waits', async () => {
  const { app, begin, waiting, first } = await setup()
  const version = await begin()
  const { port } = app.server.address() as { port: number }
  const abort = new AbortController()
  const asked = fetch(`http://127.0.0.1:${port}/v1/wait/${KEY}?after=${version}&cursor=${ORDER}.${first}`, abort)
  await waiting(1)
  abort.abort()
  await expect(asked).rejects.toThrow()
  await waiting(0)
})
