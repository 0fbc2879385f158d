import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { readRule } from '../../access/rule.ts'
import { issuers, sign } from '../../access/test-tokens.ts'
import type { Settings } from '../../settings.ts'
import { createTestGateway } from '../../test-support.ts'
import { closeServed, createTestApp, serve } from '../http/test-support.ts'
import { KEYS_MAX } from './cursor.ts'
import { TICKET_MS } from './tickets.ts'

const ends: (() => void)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) end()
  await closeServed()
})

const START_MS = 1_795_000_000_000

const of = (rule: object, user: boolean) => readRule(rule, { user, strict: true }).rule

async function setup({
  settings = {} as Partial<Settings>,
  anonymous = { read: ['*:**'], publish: ['*:**'] },
  everyone = { read: ['tick:{sub}'] } as object,
} = {}) {
  const test = createTestGateway({
    startAtMs: START_MS,
    namespaces: { tick: {} },
    rooms: { room: {} },
    policy: { anonymous: of(anonymous, false), everyone: of(everyone, true), tokens: issuers },
    settings,
  })
  await test.gateway.start()
  ends.push(() => void test.gateway.stop())
  const app = createTestApp({ ...test.gateway, origins: settings.origins ?? '*' })
  const ask = await serve(app)
  const { port } = app.server.address() as AddressInfo

  /** A stream, read event by event. */
  const stream = async (query: string, headers: Record<string, string> = {}) => {
    const sent = request({ host: '127.0.0.1', port, path: `/v1/stream${query}`, headers, agent: false })
    ends.push(() => sent.destroy())
    sent.end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    response.on('error', () => {})
    return { sent, response, ...readEvents(response) }
  }
  const send = (headers: IncomingHttpHeaders, ...messages: object[]) =>
    ask('/v1/stream/send', {
      method: 'POST',
      headers: { 'keycast-stream': String(headers['keycast-stream']) },
      body: messages.map(message => JSON.stringify(message)).join('\n'),
    })
  /** A request of which no byte of the body comes. */
  const begin = (name: string) => {
    const headers = { 'keycast-stream': name, 'content-length': '1000000' }
    const sent = request({ host: '127.0.0.1', port, path: '/v1/stream/send', method: 'POST', headers, agent: false })
    ends.push(() => sent.destroy())
    sent.on('error', () => {}).flushHeaders()
    return sent
  }
  const tokenFor = (sub: string) => sign({ sub, nowMs: START_MS })
  return { ...test, app, port, ask, stream, send, begin, tokenFor }
}

interface Event {
  id?: string
  event?: string
  data?: any
}

function readEvents(response: IncomingMessage) {
  const events: Event[] = []
  let text = ''
  let heard = () => {}
  response.setEncoding('utf8').on('data', chunk => {
    text += chunk
    const blocks = text.split('\n\n')
    text = blocks.pop() as string
    for (const block of blocks) events.push(eventOf(block))
    heard()
  })
  /** The next event that has these fields. */
  const next = async (fields: object): Promise<Event> => {
    for (;;) {
      const at = events.findIndex(({ data, event }) =>
        Object.entries(fields).every(([name, value]) => (name === 'event' ? event : data?.[name]) === value),
      )
      if (at >= 0) return events.splice(0, at + 1).at(-1) as Event
      await new Promise<void>(resolve => {
        heard = resolve
      })
    }
  }
  return { next, events }
}

function eventOf(block: string): Event {
  const fields = Object.fromEntries(block.split('\n').map(line => /^(\w*): ?(.*)$/s.exec(line)?.slice(1) ?? ['', '']))
  return { ...fields, ...(fields.data && { data: JSON.parse(fields.data) }) }
}

test('what is published over a stream has the turn and the share of its user, as over a WebSocket; a guest has the turn of guests', async () => {
  const { stream, send, connect, tokenFor, journal, turn } = await setup({ everyone: { publish: ['room:*'] } })
  const publish = { type: 'publish', id: 1, key: 'room:1', data: 1 }
  const authorization = `Bearer ${await tokenFor('ann')}`
  for (const headers of [{ authorization }, {} as Record<string, string>]) {
    const { response, next } = await stream('', headers)
    await send(response.headers, publish)
    await next({ type: 'published', id: 1 })
  }
  const socket = await connect()
  socket.send({ ...publish, data: 2 })
  socket.send({ type: 'auth', id: 2, token: await tokenFor('ann') })
  while (!(await socket.received()).some(({ type }) => type === 'authed')) await turn()
  await socket.ask({ ...publish, data: 3 })
  const ofAnn = expect.stringMatching(/^u[\w-]{11}$/)
  expect(journal.payers).toEqual([ofAnn, 'g.A', 'g.A', ofAnn])
  expect(journal.payers[3]).toBe(journal.payers[0])
})

test('a stream begins with welcome, and has the values of its keys and their changes', async () => {
  const { stream, backbone, gateway } = await setup()
  const { response, next } = await stream('?keys=tick:1,nothing:1')
  expect(response.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    'keycast-stream': expect.stringMatching(/^[\w-]{22}$/),
  })
  await next({ type: 'welcome' })
  expect(await next({ type: 'subscribed' })).toEqual({ data: { type: 'subscribed', keys: [{ key: 'tick:1' }] } })
  await next({ type: 'error', key: 'nothing:1', code: 'unknown_namespace' })
  backbone.value('tick:1', '{\n  "a": 1\n}')
  expect((await next({ type: 'value' })).data.data).toEqual({ a: 1 })
  backbone.value('tick:1', '2')
  expect((await next({ type: 'value' })).data.data).toBe(2)
  expect(gateway.streams.streams.size).toBe(1)
})

test('what the client asks for comes by requests under the name of its stream', async () => {
  const { stream, send, ask } = await setup()
  const { response, next } = await stream('')
  await next({ type: 'welcome' })
  expect((await send(response.headers, { type: 'subscribe', id: 1, keys: ['room:1'] })).status).toBe(204)
  await next({ type: 'subscribed', id: 1 })
  const publish = (id: number) => ({ type: 'publish', id, key: 'room:1', data: { text: `Hi ${id}` } })
  expect((await send(response.headers, publish(2), publish(3))).status).toBe(204)
  expect((await next({ type: 'message' })).data).toMatchObject({ seq: 1, data: { text: 'Hi 2' } })
  await next({ type: 'published', id: 2 })
  await next({ type: 'published', id: 3 })
  const stranger = await ask('/v1/stream/send', { method: 'POST', headers: { 'keycast-stream': 'x' }, body: '{}' })
  expect([stranger.status, stranger.json().code]).toEqual([404, 'unknown_stream'])
})

test('a room goes on after the last event’s id, with nothing missed and nothing twice', async () => {
  const { stream, send } = await setup()
  const writer = await stream('')
  const publish = (data: number) => send(writer.response.headers, { type: 'publish', id: data, key: 'room:1', data })
  const first = await stream('?keys=tick:1,room:1')
  const begun = await first.next({ type: 'subscribed' }).then(() => first.next({ type: 'subscribed' }))
  expect(begun.id).toBeDefined()
  await publish(1)
  const { id } = await first.next({ type: 'message', seq: 1 })
  first.sent.destroy()
  await publish(2)
  await publish(3)
  await writer.next({ type: 'published', id: 3 })
  for (const [query, headers] of [
    ['?keys=tick:1,room:1', { 'last-event-id': String(id) }],
    [`?keys=tick:1,room:1&after=${id}`, {}],
  ] as const) {
    const again = await stream(query, headers)
    const { data } = await again.next({ type: 'message' })
    expect(data).toMatchObject({ seq: 2, data: 2 })
    await again.next({ type: 'message', seq: 3 })
  }
})

test.each([
  ['?keys=room:1&after=x', 400, 'bad_request'],
  ['?key=a:1', 400, 'bad_request'],
  [`?keys=${Array.from({ length: 101 }, (_, id) => `a:${id}`)}`, 400, 'too_many_keys'],
  ['?keys=a:1&ticket=x', 404, 'unknown_ticket'],
])('a stream that cannot be opened is refused: %s', async (query, status, code) => {
  const { ask } = await setup()
  const answer = await ask(`/v1/stream${query}`)
  expect([answer.status, answer.json().code]).toEqual([status, code])
})

test('a key whose & is not encoded is refused with what to write', async () => {
  const { ask } = await setup()
  const answer = await ask('/v1/stream?keys=tasks:7?status=open&page=2')
  expect([answer.status, answer.json().code]).toEqual([400, 'bad_request'])
  expect(answer.json().message).toContain('%26')
})

test('keys are split at commas, but at those that are encoded, and may be named one by one', async () => {
  const { stream } = await setup()
  const { next } = await stream('?keys=tick:a%2Cb,tick:c+d&keys=tick:%C3%A9,room:%C3%A9')
  const { keys } = (await next({ type: 'subscribed' })).data
  expect(keys).toEqual(['tick:a,b', 'tick:c d', 'tick:é'].map(key => ({ key })))
})

test('a stream takes as many keys as its URL may name', async () => {
  const { stream, backbone } = await setup()
  const keys = Array.from({ length: KEYS_MAX }, (_, id) => `tick:${id}`)
  const { next } = await stream(`?keys=${keys}`)
  expect((await next({ type: 'subscribed' })).data.keys).toHaveLength(KEYS_MAX)
  backbone.value('tick:99', '1')
  await next({ type: 'value', key: 'tick:99' })
})

test('HEAD opens no stream', async () => {
  const { ask } = await setup()
  expect((await ask('/v1/stream', { method: 'HEAD' })).status).toBe(404)
})

test('the position in a room moves whatever script its name is in', async () => {
  const { stream, send } = await setup()
  const { response, next } = await stream(`?keys=${encodeURIComponent('room:комната')}`)
  await next({ type: 'subscribed' })
  await send(response.headers, { type: 'publish', id: 1, key: 'room:комната', data: 1 })
  expect((await next({ type: 'message' })).id).toMatch(/\.1$/)
})

test('a ticket opens one stream with the rights of its token', async () => {
  const { ask, stream, tokenFor, backbone } = await setup({ anonymous: {} as any })
  const token = await tokenFor('ann')
  const headers = { authorization: `Bearer ${token}` }
  const { ticket, expiresInMs } = (await ask('/v1/ticket', { method: 'POST', headers })).json()
  expect(expiresInMs).toBe(TICKET_MS)
  const { next } = await stream(`?keys=tick:ann,tick:bob&ticket=${ticket}`)
  expect((await next({ type: 'welcome' })).data).toMatchObject({ user: 'ann' })
  await next({ type: 'subscribed' })
  await next({ type: 'error', key: 'tick:bob', code: 'forbidden' })
  backbone.value('tick:ann', '1')
  await next({ type: 'value', data: 1 })
  expect((await ask(`/v1/stream?ticket=${ticket}`)).status).toBe(404)
})

test('a ticket of a token that was revoked meanwhile opens nothing', async () => {
  const { ask, tokenFor, gateway } = await setup()
  const headers = { authorization: `Bearer ${await tokenFor('ann')}` }
  const { ticket } = (await ask('/v1/ticket', { method: 'POST', headers })).json()
  gateway.revoke({ sub: 'ann', before: START_MS / 1_000 + 1 })
  const refused = await ask(`/v1/stream?ticket=${ticket}`)
  expect([refused.status, refused.json().code]).toEqual([401, 'token_refused'])
})

test.each([{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }])(
  'a page that may not connect gets no ticket with the token of its user: %o',
  async from => {
    const { ask, tokenFor } = await setup({ settings: { origins: 'https://app.example' } })
    const headers = { authorization: `Bearer ${await tokenFor('ann')}` }
    const post = (of: object) => ask('/v1/ticket', { method: 'POST', headers: { ...headers, ...of } })
    expect((await post({ origin: 'https://app.example' })).status).toBe(200)
    expect((await post({ origin: 'https://own.example', 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    expect((await post(from)).status).toBe(403)
  },
)

test('without a good token there is no ticket', async () => {
  const { ask } = await setup()
  expect((await ask('/v1/ticket', { method: 'POST' })).status).toBe(401)
  const headers = { authorization: 'Bearer x' }
  expect((await ask('/v1/ticket', { method: 'POST', headers })).status).toBe(401)
  expect((await ask('/v1/stream', { headers })).status).toBe(401)
})

test('a session whose token expires is told so over its stream, and then closed', async () => {
  const { stream, tokenFor, pass } = await setup({ anonymous: {} as any })
  const { next, response } = await stream('?keys=tick:ann', { authorization: `Bearer ${await tokenFor('ann')}` })
  await next({ type: 'subscribed' })
  const ended = once(response, 'end')
  await pass(61_000)
  await next({ type: 'error', code: 'token_expired' })
  await pass(60_000)
  expect((await next({ event: 'close' })).data).toMatchObject({ code: 4001 })
  await ended
})

test('a page of an origin that may connect is let in and may read; another is refused as over the WebSocket', async () => {
  const { stream, ask, gateway } = await setup({ settings: { origins: 'https://a.example' } })
  const { response } = await stream('', { origin: 'https://a.example' })
  expect(response.headers).toMatchObject({
    'access-control-allow-origin': 'https://a.example',
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': expect.stringContaining('Keycast-Stream'),
  })
  const refused = await ask('/v1/stream', { headers: { origin: 'https://b.example' } })
  expect([refused.status, refused.json().message]).toEqual([403, expect.stringContaining('GATEWAY_ORIGINS')])
  expect(refused.headers).not.toHaveProperty('access-control-allow-origin')
  const embedded = (site: string) => ask('/v1/stream', { headers: { 'sec-fetch-site': site } })
  expect([(await embedded('cross-site')).status, (await embedded('same-site')).status]).toEqual([403, 403])
  expect(gateway.counts.refused.origin).toBe(3)
  await stream('', { 'sec-fetch-site': 'same-origin' })
})

test('an address has as many streams as it may have sessions', async () => {
  const { stream, ask } = await setup({ settings: { sessionsPerAddressMax: 2, trustedProxies: '127.0.0.1' } })
  const headers = { 'x-forwarded-for': '192.0.2.7' }
  const { sent, next } = await stream('?keys=tick:1', headers)
  await next({ type: 'subscribed' })
  await stream('', headers)
  expect((await ask('/v1/stream', { headers })).status).toBe(429)
  sent.destroy()
})

test('a gateway that drains says so, closes its streams and takes no new ones', async () => {
  const { stream, ask, gateway } = await setup()
  const { next, response } = await stream('?keys=tick:1')
  await next({ type: 'subscribed' })
  const drained = gateway.drain()
  await next({ type: 'closing' })
  expect((await ask('/v1/stream')).status).toBe(503)
  expect((await next({ event: 'close' })).data).toMatchObject({ code: 1012 })
  await once(response, 'end')
  await drained
  expect(gateway.streams.streams.size).toBe(0)
})

test('a client that leaves ends its session', async () => {
  const { stream, gateway, turn } = await setup()
  const { sent, next } = await stream('?keys=tick:1')
  await next({ type: 'subscribed' })
  sent.destroy()
  while (gateway.streams.streams.size > 0) await turn()
  while (gateway.counts.closed.lost === 0) await turn()
  expect(gateway.counts.closed.lost).toBe(1)
})

test('a client that does not read is owed the latest value alone, and closed as slow once it takes nothing', async () => {
  const { stream, backbone, gateway, turn, pass } = await setup({ settings: { stallMsMax: 5_000 } })
  const { response, next } = await stream('?keys=tick:1')
  await next({ type: 'subscribed' })
  response.pause()
  const value = (number: number) => backbone.value('tick:1', JSON.stringify({ number, filling: 'x'.repeat(1_000_000) }))
  for (let number = 0; gateway.counts.conflated < 3; number++) {
    value(number)
    await turn()
  }
  await pass(0)
  await pass(5_000)
  response.resume()
  expect((await next({ event: 'close' })).data).toMatchObject({ code: 4008 })
  while (gateway.counts.closed.slow === 0) await turn()
})

test('a client that reads again is sent the latest value', async () => {
  const { stream, backbone, gateway, turn } = await setup()
  const { response, next } = await stream('?keys=tick:1')
  await next({ type: 'subscribed' })
  response.pause()
  let number = 0
  while (gateway.counts.conflated < 3) {
    backbone.value('tick:1', JSON.stringify({ number: ++number, filling: 'x'.repeat(1_000_000) }))
    await turn()
  }
  response.resume()
  for (;;) if ((await next({ type: 'value' })).data.data.number === number) return
})

test('a client that sends nonsense is told, and closed once it sends very much', async () => {
  const { stream, send, ask } = await setup({ settings: { requestsPerSecondMax: 10 } })
  const { response, next } = await stream('')
  await send(response.headers, { type: 'dance' })
  await next({ type: 'error', code: 'unknown_type' })
  const name = String(response.headers['keycast-stream'])
  await ask('/v1/stream/send', { method: 'POST', headers: { 'keycast-stream': name }, body: 'x\n'.repeat(100) })
  expect((await next({ event: 'close' })).data).toMatchObject({ code: 4007 })
})

test('an empty line is a pong, and costs as much as one', async () => {
  const { stream, ask } = await setup({ settings: { requestsPerSecondMax: 10 } })
  const { response, next } = await stream('')
  const headers = { 'keycast-stream': String(response.headers['keycast-stream']) }
  await ask('/v1/stream/send', { method: 'POST', headers, body: '\n{"type":"ping"}\n' })
  await next({ type: 'pong' })
  await ask('/v1/stream/send', { method: 'POST', headers, body: '\n'.repeat(100) })
  expect((await next({ event: 'close' })).data).toMatchObject({ code: 4007 })
})

test('a request that is longer than the longest message is refused', async () => {
  const { ask, stream } = await setup({ settings: { messageBytesMax: 2_048 } })
  const { response } = await stream('')
  const headers = { 'keycast-stream': String(response.headers['keycast-stream']) }
  const body = 'x'.repeat(2_049)
  const refused = await ask('/v1/stream/send', { method: 'POST', headers, body })
  expect([refused.status, refused.json().code]).toEqual([413, 'bad_request'])
})

test('a request that is too long is refused on a connection that goes on: a proxy in front may still be sending', async () => {
  const { port, stream } = await setup({ settings: { messageBytesMax: 2_048 } })
  const { response } = await stream('')
  const socket = connect({ port, host: '127.0.0.1' })
  ends.push(() => socket.destroy())
  let said = ''
  socket.setEncoding('latin1').on('data', text => {
    said += text
  })
  const name = response.headers['keycast-stream']
  socket.write(`POST /v1/stream/send HTTP/1.1\r\nHost: x\r\nKeycast-Stream: ${name}\r\nContent-Length: 9000\r\n\r\n`)
  await once(socket, 'data')
  socket.write(`${'x'.repeat(9_000)}GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n`)
  while (!said.includes('HTTP/1.1 404')) await once(socket, 'data')
  expect(said).toMatch(/^HTTP\/1.1 413 /)
})

test('a stream ends with another request on its connection, of which many fit into one read', async () => {
  const { port, gateway, turn } = await setup()
  const socket = connect({ port, host: '127.0.0.1' }).resume()
  ends.push(() => socket.destroy())
  socket.on('error', () => {}).write('GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n')
  while (gateway.streams.streams.size === 0) await turn()
  // Without a host, which Node would answer by itself.
  socket.write('GET /v1/values/tick:1 HTTP/1.1\r\n\r\n'.repeat(100))
  while (gateway.streams.streams.size > 0) await turn()
  expect(gateway.counts.httpMisses).toBe(0)
})

test('a stream that was ended takes nothing more, though its client has not closed the connection', async () => {
  const { port, gateway, turn, ask } = await setup()
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).resume()
  ends.push(() => socket.destroy())
  socket.write('GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n')
  while (gateway.streams.streams.size === 0) await turn()
  const [name] = gateway.streams.streams.keys()
  const send = async () => {
    const headers = { 'keycast-stream': name }
    return (await ask('/v1/stream/send', { method: 'POST', headers, body: '{"type":"ping"}' })).status
  }
  expect(await send()).toBe(204)
  // As a listener on :: shows an address of IPv4.
  expect(gateway.endAddress('::ffff:127.0.0.1')).toBe(1)
  expect(await send()).toBe(404)
})

test('a request is refused before its body is read where it names no stream', async () => {
  const { begin } = await setup()
  const [response] = (await once(begin('x'), 'response')) as [IncomingMessage]
  expect(response.statusCode).toBe(404)
})

test('requests that never end are bounded in memory: the session that awaits most is closed', async () => {
  const { stream, begin } = await setup({ settings: { messageBytesMax: 1_000_000 } })
  const { response, next } = await stream('')
  for (let count = 0; count < 70; count++) begin(String(response.headers['keycast-stream']))
  expect((await next({ event: 'close' })).data).toMatchObject({ code: 1008 })
})

test('a client that has answered a comment is gone once it answers no more; one that never does may be a browser', async () => {
  const { ask, stream, gateway, turn } = await setup({ settings: { heartbeatMs: 200 } })
  const [answering, silent] = [await stream(''), await stream('')]
  const headers = { 'keycast-stream': String(answering.response.headers['keycast-stream']) }
  expect((await ask('/v1/stream/send', { method: 'POST', headers })).status).toBe(204)
  while (gateway.streams.streams.size > 1) await turn()
  expect([...gateway.streams.streams.keys()]).toEqual([silent.response.headers['keycast-stream']])
})

test.each(['the client', 'the gateway'])(
  'requests that are to come end with their stream, whoever ends it: %s',
  async by => {
    const { app, gateway, stream, begin } = await setup({ settings: { messageBytesMax: 1_000_000 } })
    const { sent, response } = await stream('')
    const taken = once(app.server, 'request')
    const request = begin(String(response.headers['keycast-stream']))
    await taken
    const ended = new Promise(resolve =>
      request.once('error', () => resolve('cut')).once('response', () => resolve('answered')),
    )
    if (by === 'the client') sent.destroy()
    else void gateway.drain()
    expect(await ended).toBe('cut')
  },
)
