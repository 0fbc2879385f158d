// Hostile and broken clients: they get the right error or close code, the gateway goes on, other sessions do not notice,
// and no request leaves a namespace's path.
import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { errorCodes } from '@keycast/protocol'
import WebSocket from 'ws'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { atEnd } from '../support/cleanup.ts'
import { connect, resume, stall, tcpOf } from '../support/client.ts'
import { eventually, within } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { ask } from '../support/http.ts'
import { MIB, watchMemory } from '../support/memory.ts'
import { isAlive } from '../support/processes.ts'
import { createRandom } from '../support/random.js'
import { type Gateway, startSystem } from '../support/system.ts'

const backend = await startBackend()
const secret = 'this lies beside the namespace, not in it'
backend.on('/secret', answers.json(JSON.stringify({ secret })))
backend.on('/docs/1', answers.json(documentOf(1)))
for (let id = 0; id < 50; id += 1) backend.on(`/docs/big-${id}`, answers.json(documentOf(1, 130_000)))

const { gateways, fetchers, startGateway } = await startSystem({
  namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: '200ms', maxAge: '1h' } },
})
const [gateway] = gateways
const quiet = await startGateway()
const unhurried = await startGateway({ GATEWAY_REQUESTS_PER_SECOND_MAX: '1000000' })

/** Watches all along: whatever the others do, its changes keep coming. */
const bystander = await connect(gateway.url)
await bystander.subscribe(['doc:bystander'])
let revision = 0

afterEach(async () => {
  revision += 1
  backend.on('/docs/bystander', answers.json(documentOf(revision)))
  await bystander.reaches('doc:bystander', revision)
  expect(isAlive(gateway.process.pid)).toBe(true)
  expect(isAlive(fetchers[0].process.pid)).toBe(true)
  expect(backend.asked.filter(({ path, method }) => !path.startsWith('/docs/') || method !== 'GET')).toEqual([])
})

const badKeys = [
  'doc:..',
  'doc:../secret',
  'doc:../../secret',
  'doc:a/../../secret',
  'doc:.',
  'doc:./1',
  'doc:%2e%2e/secret',
  'doc:%2E%2E%2Fsecret',
  'doc:..%2fsecret',
  'doc:..\\secret',
  'doc:/secret',
  'doc://evil.example/',
  'doc:1/',
  'doc:1//2',
  'doc:1?x=1',
  'doc:1#x',
  'doc:1&x',
  'doc:1;x',
  'doc:1@evil.example:80/',
  'doc:a\tb',
  'doc:a\r\nhost: evil.example',
  'doc:a\u0000b',
  'doc:a\u007fb',
  'doc:e\u0301',
  'doc:\u2025/secret',
  'doc:\uff0e\uff0e/secret',
  'doc:\ud800',
  'doc:',
  ':1',
  'doc',
  '',
  'DOC:1',
  '__proto__:1',
  `doc:${'x'.repeat(256)}`,
  `doc:${'x'.repeat(100_000)}`,
]
const foreignKeys = ['conversation:1', 'secret:1', 'constructor:1', 'to-string:1']

test('keys that could lead elsewhere are refused, each with its code, and the rest of a subscribe stands', async () => {
  const client = await connect(gateway.url)
  const asked = backend.asked.length
  for (const [keys, code] of [
    [badKeys, 'bad_key'],
    [foreignKeys, 'unknown_namespace'],
  ] as const) {
    for (const key of keys) {
      expect(await client.request({ type: 'get', key })).toMatchObject({ type: 'error', code })
    }
    for (const key of keys) {
      const answer: any = await client.request({ type: 'subscribe', keys: [key] })
      if (answer.type === 'error') expect(answer.code).toBe(code)
      else expect(answer).toMatchObject({ type: 'subscribed', keys: [] })
    }
  }
  expect(backend.asked.slice(asked).filter(({ path }) => path !== '/docs/bystander')).toEqual([])

  await client.subscribe(['doc:../secret', 'doc:1', 'other:1'])
  await client.reaches('doc:1', 1)
  client.close()
})

test.each([
  ['doc:@evil.example', '/docs/%40evil.example'],
  ['doc:1@evil.example:80', '/docs/1%40evil.example%3A80'],
  ['doc:a b', '/docs/a%20b'],
  ['doc:é+$', '/docs/%C3%A9%2B%24'],
])('%s is one segment of the path below its namespace', async (key, path) => {
  const client = await connect(gateway.url)
  backend.on(path, answers.json(documentOf(1)))
  expect(await client.request({ type: 'get', key })).toMatchObject({ type: 'value', key })
  expect(backend.askedFor(path)).toHaveLength(1)
  client.close()
})

const badPaths = [
  '/v1/values/doc:..%2fsecret',
  '/v1/values/doc:../secret',
  '/v1/values/doc:%2e%2e/secret',
  '/v1/values/doc:%252e%252e%252fsecret',
  '/v1/values/doc:..%5csecret',
  '/v1/values/doc:a%00b',
  '/v1/values/doc:a%0d%0ahost:evil',
  '/v1/values/doc:1%3fx=1',
  '/v1/values/doc:%ff',
  '/v1/values/doc:%',
  '/v1/values/other:1',
  '/v1/values/',
  '/../../etc/passwd',
  '/%2e%2e/%2e%2e/etc/passwd',
  '/v1/keys/doc:1',
  '/metrics',
  `/v1/values/doc:${'x'.repeat(5_000)}`,
]

test('paths that could lead elsewhere are refused', async () => {
  for (const path of badPaths) {
    const { status, body } = await ask(gateway.http + path)
    expect({ path, refused: status >= 400 && status < 500 }).toEqual({ path, refused: true })
    expect(body.toString()).not.toContain(secret)
    expect(body.toString()).not.toContain('root:')
  }
})

/**
 * @param act the client's action once it is welcome
 * @returns the close code
 */
const closeCodeAfter = async (act: (socket: WebSocket) => void): Promise<number> => {
  const socket = new WebSocket(gateway.url)
  socket.on('error', () => {})
  const code = new Promise(resolve => socket.on('close', resolve))
  socket.once('message', () => act(socket))
  return within(code as Promise<any>, 'the connection being closed')
}

test.each([
  ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), false, 1007],
  ['an overlong encoding', Buffer.from([0xc0, 0xaf]), false, 1007],
  ['a binary message', Buffer.from('{"type":"ping"}'), true, 1003],
  ['a message over the limit', Buffer.alloc(300_000, 'a'), false, 1009],
  ['a far larger one', Buffer.alloc(20_000_000, 'a'), false, 1009],
])('%s closes the connection with the right code', async (_, bytes, binary, code) => {
  expect(await closeCodeAfter(socket => socket.send(bytes, { binary }))).toBe(code)
})

test('a message of endless fragments is cut off at the limit', async () => {
  const code = await closeCodeAfter(socket => {
    const fragment = Buffer.alloc(16_384, 'a')
    for (let sent = 0; sent < 1_000; sent += 1) socket.send(fragment, { binary: false, fin: false })
  })
  expect(code).toBe(1009)
})

test.each([
  ['random bytes in place of a request', 0],
  ['a WebSocket handshake and random bytes after it', 1],
])('%s end that connection and no other', async (_, handshake) => {
  const random = createRandom(4_711 + handshake)
  for (let round = 0; round < 20; round += 1) {
    const socket = connectTcp(gateway.port, '127.0.0.1')
    const ended = new Promise(resolve => socket.on('close', resolve))
    socket.on('error', () => {})
    socket.resume()
    if (handshake) {
      socket.write(
        'GET /ws HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n' +
          'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      )
    }
    // An unmasked frame first (RFC 6455 section 5.1: the server must fail the connection), then anything.
    socket.write(handshake ? Buffer.concat([Buffer.from([0x81, 0x05]), random.bytes(5_000)]) : random.bytes(5_000))
    socket.end()
    await within(ended, 'the end of the connection')
  }
})

const deep = '['.repeat(5_000) + ']'.repeat(5_000)

test.each([
  ['{"type":DEEP}', 'unknown_type'],
  ['{"type":"ping","id":DEEP}', 'bad_message'],
  ['{"type":"get","key":DEEP}', 'bad_message'],
  ['{"type":"subscribe","keys":DEEP}', 'bad_message'],
  ['{"type":"subscribe","keys":[{"key":"doc:1","after":DEEP}]}', 'bad_message'],
  ['{"type":"publish","key":"doc:1","data":DEEP}', 'bad_message'],
  ['{"type":"join","key":"doc:1","name":DEEP}', 'bad_message'],
  ['{"type":"auth","token":DEEP}', 'bad_message'],
])('%s, 5,000 levels deep, is answered like any bad message', async (text, code) => {
  const socket = new WebSocket(gateway.url)
  await once(socket, 'message')
  socket.send(text.replace('DEEP', deep))
  const [answer] = await once(socket, 'message')
  expect(JSON.parse(answer.toString())).toMatchObject({ type: 'error', code })
  socket.close()
})

test.each([
  '{"key":"doc:1","sub":"ann","keys":{"read":[DEEP]}}',
  '{"key":"doc:1","sub":"ann","keys":DEEP}',
  '{"key":DEEP}',
])('%s, posted to /v1/access 5,000 levels deep, is a bad request', async text => {
  const { status } = await gateway.call('/v1/access', text.replace('DEEP', deep))
  expect(status).toBe(400)
})

test('mutated messages are answered or closed, never followed by silence', async () => {
  const random = createRandom(42)
  const messages = [
    { type: 'subscribe', id: 1, keys: ['doc:1', { key: 'doc:2', version: 'abc' }] },
    { type: 'get', id: 'x', key: 'doc:1', version: 'abc' },
    { type: 'unsubscribe', id: 3, keys: ['doc:1'] },
    { type: 'ping', id: 4 },
    { type: 'get', id: [], key: { toString: 1 } },
    { type: 'subscribe', keys: [[], {}, null, 1, '__proto__'] },
    { type: ['subscribe'], keys: 'doc:1' },
    { __proto__: null, type: 'constructor' },
  ].map(message => Buffer.from(JSON.stringify(message)))
  const codes = new Set(Object.keys(errorCodes))

  let closed = 0
  let answered = 0
  let client = await connect(gateway.url)
  for (let round = 0; round < 1_500; round += 1) {
    const mutated = random.mutate(messages[round % messages.length])
    const before = client.received()
    client.send(mutated)
    try {
      await client.until(() => client.received() > before, 'an answer')
      answered += 1
    } catch {
      const { code } = await client.gone()
      expect([1007, 4007]).toContain(code)
      closed += 1
      client = await connect(gateway.url)
    }
  }
  for (const key of client.sights.keys()) {
    const { error } = client.of(key)
    if (error) expect(codes.has(error.code)).toBe(true)
  }
  show(`1,500 mutated messages: ${answered} answered, ${closed} connections closed`)
  client.close()
})

test('of ten thousand keys in one subscribe those over the limit are refused, and never asked for', async () => {
  const client = await connect(gateway.url)
  const { keysPerSession } = client.welcome().limits
  expect(keysPerSession).toBeLessThan(10_000)
  const keys = Array.from({ length: 10_000 }, (_, index) => `doc:m-${index}`)
  const grown = watchMemory(gateway.process.pid)
  const answer = await client.subscribe(keys)
  expect(answer.keys).toEqual(keys.slice(0, keysPerSession).map(key => ({ key })))
  for (const [index, key] of keys.entries()) {
    const code = index < keysPerSession ? 'not_found' : 'too_many_keys'
    await client.until(() => client.of(key).error?.code === code, `the error ${code} for ${key}`)
  }
  expect(grown()).toBeLessThan(50 * MIB)
  const asked = new Set(backend.asked.map(({ path }) => path).filter(path => path.startsWith('/docs/m-')))
  expect(asked.size).toBe(keysPerSession)
  client.close()
})

const pipelines: [string, Gateway, (code: number | undefined) => void][] = [
  ['as gateways are set up: it is closed', gateway, code => expect(code).toBe(4007)],
  ['where any number of requests is allowed', unhurried, code => expect([undefined, 4008]).toContain(code)],
]

test.each(pipelines)('10,000 pipelined gets by a client that does not read, %s', async (_, target, expectCode) => {
  const others = await connect(target.url)
  for (let id = 0; id < 50; id += 1) await others.request({ type: 'get', key: `doc:big-${id}` })

  const valuesSent = () => target.metric('keycast_gateway_messages_sent_total{type="value"}')
  const sentBefore = await valuesSent()
  const grown = watchMemory(target.process.pid)
  const socket = new WebSocket(target.url)
  atEnd(() => socket.terminate())
  socket.on('error', () => {})
  const gone = new Promise<number>(resolve => socket.on('close', resolve))
  await new Promise(resolve => socket.once('message', resolve))
  stall(socket)
  // Ten thousand answers of 130 KB would be 1.3 GB.
  for (let index = 0; index < 10_000; index += 1) {
    socket.send(JSON.stringify({ type: 'get', id: index, key: `doc:big-${index % 50}` }))
  }
  // A client that does not read cannot see that it was heard; another one's pings, answered after, stand for it.
  await eventually(() => socket.bufferedAmount === 0 || socket.readyState !== WebSocket.OPEN, 'all being sent')
  for (let count = 0; count < 50; count += 1) await others.ping()
  const growthBytes = grown()
  const values = (await valuesSent()) - sentBefore
  show(
    `10,000 pipelined gets, nothing read: gateway made ${values} values, and grew ${(growthBytes / MIB).toFixed(1)} MiB`,
  )
  expect(values).toBeLessThan(200)
  expect(growthBytes).toBeLessThan(50 * MIB)

  // A client that reads at last finds answers, errors for those it may not have, or a close with its reason.
  const answered: any[] = []
  socket.on('message', data => answered.push(JSON.parse(data.toString()).type))
  resume(socket)
  const pong = new Promise<undefined>(resolve => socket.once('pong', () => resolve(undefined)))
  socket.ping()
  const code = await within(Promise.race([gone, pong]), 'a pong or the close')
  expectCode(code)
  const errors = answered.filter(type => type === 'error').length
  show(
    `then ${answered.length - errors} were answered with a value, ${errors} with an error, then ${code ? `closed with ${code}` : 'a pong'}`,
  )
  others.close()
})

test('a flood of requests is refused with a time to come back, and closed when it does not stop', async () => {
  const code = await closeCodeAfter(socket => {
    const flood = setInterval(() => {
      for (let count = 0; count < 5_000; count += 1) socket.send('{"type":"nonsense"}')
    }, 10)
    socket.on('close', () => clearInterval(flood))
  })
  expect(code).toBe(4007)
})

const halfClosers: [string, { isBehind?: boolean; withClose?: boolean }][] = [
  ['with nothing to read', {}],
  ['with more to read', { isBehind: true }],
  ['with more to read, after a close frame', { isBehind: true, withClose: true }],
]

test.each(halfClosers)(
  'a client that stops reading and shuts down its side, %s, is no session for long',
  async (_, { isBehind, withClose }) => {
    const sockets = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const socket = new WebSocket(quiet.url)
        atEnd(() => socket.terminate())
        socket.on('error', () => {})
        await once(socket, 'message')
        return socket
      }),
    )
    expect(await quiet.metric('keycast_gateway_sessions')).toBe(20)
    for (const socket of sockets) stall(socket)
    if (isBehind) {
      const keys = Array.from({ length: 50 }, (_, id) => `doc:big-${id}`)
      for (const socket of sockets) socket.send(JSON.stringify({ type: 'subscribe', keys }))
      await eventually(
        async () => (await quiet.metric('keycast_gateway_sessions_stalled')) === 20,
        'all sessions being stalled',
      )
    }
    for (const socket of sockets) {
      if (withClose) socket.close()
      tcpOf(socket).end()
    }
    await eventually(async () => (await quiet.metric('keycast_gateway_sessions')) === 0, 'the end of the sessions')
  },
)
