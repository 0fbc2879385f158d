// A gateway on real sockets, with real clients and a backbone that records.
import { EventEmitter } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import { type AddressInfo, connect as connectTcp } from 'node:net'
import { text } from 'node:stream/consumers'
import { createContainment, createLog, noContainment, realWorld, runService } from '@keycast/service'
import { WebSocket } from 'ws'
import { createGateway } from './gateway.ts'
import type { Settings } from './settings.ts'
import { createFakeBackbone, createNamespaces, createPolicy, defaults, noMetrics } from './test-support.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function start(settings?: Partial<Settings>, containment = noContainment) {
  const backbone = createFakeBackbone()
  const gateway = createGateway({
    ...realWorld,
    settings: { ...defaults, drainMs: 100, ...settings },
    namespaces: createNamespaces(),
    policy: createPolicy(),
    createBackbone: backbone.connect,
    metrics: noMetrics,
    containment,
  })
  const server = createServer((_, response) => response.end('over HTTP'))
  gateway.attach(server)
  await gateway.start()
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = server.address() as AddressInfo
  cleanUps.push(async () => {
    await gateway.stop()
    server.closeAllConnections()
    server.close()
  })
  return { gateway, backbone, port, server, url: `ws://127.0.0.1:${port}/ws` }
}

async function connect(url: string, { protocols = [], origin }: { protocols?: string[]; origin?: string } = {}) {
  const socket = new WebSocket(url, protocols, { origin, perMessageDeflate: false })
  cleanUps.push(() => socket.terminate())
  const messages: any[] = []
  let waiting: (() => void)[] = []
  socket.on('message', data => {
    messages.push(JSON.parse(data.toString()))
    for (const wake of waiting.splice(0)) wake()
  })
  const closed = new Promise(resolve => socket.once('close', code => resolve(code)))
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  /** @returns the next message */
  const next = async (): Promise<any> => {
    while (messages.length === 0) await new Promise(resolve => (waiting = [...waiting, () => resolve(undefined)]))
    return messages.shift()
  }
  const send = (message: unknown) => socket.send(JSON.stringify(message))
  expect(await next()).toMatchObject({ type: 'welcome' })
  return { socket, next, send, closed, messages }
}

/** The status and the message of a refused upgrade. */
const upgrade = (port: number, headers: Record<string, string>, path = '/ws') =>
  new Promise<{ status?: number; protocol?: string; retryAfter?: string }>((resolve, reject) => {
    const request = httpRequest({
      port,
      path,
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
        ...headers,
      },
    })
    request.on('error', reject)
    request.on('upgrade', (response, socket) => {
      socket.destroy()
      resolve({ status: 101, protocol: response.headers['sec-websocket-protocol'] })
    })
    request.on('response', response => {
      response.resume()
      resolve({ status: response.statusCode, retryAfter: response.headers['retry-after'] })
    })
    request.end()
  })

test('two clients see a key live, and one that asks once is answered', async () => {
  const { url, backbone } = await start()
  const [one, other] = [await connect(url), await connect(url)]
  for (const client of [one, other]) {
    client.send({ type: 'subscribe', id: 1, keys: ['tick:1'] })
    expect(await client.next()).toEqual({ type: 'subscribed', id: 1, keys: [{ key: 'tick:1' }] })
  }
  const data = { text: 'ü'.repeat(100_000) }
  const version = backbone.value('tick:1', JSON.stringify(data))
  for (const client of [one, other])
    expect(await client.next()).toEqual({ type: 'value', key: 'tick:1', version, data })

  one.send({ type: 'get', id: 'g', key: 'tick:1' })
  expect(await one.next()).toEqual({ type: 'value', id: 'g', key: 'tick:1', version, data })
  expect(backbone.calls).toEqual(['watch tick:1'])
})

test('a client that goes away without a word has left its keys', async () => {
  const { url, backbone } = await start()
  const client = await connect(url)
  client.send({ type: 'subscribe', keys: ['tick:1'] })
  await client.next()
  client.socket.terminate()
  while (backbone.calls.length < 2) await new Promise(resolve => setImmediate(resolve))
  expect(backbone.calls).toEqual(['watch tick:1', 'unwatch tick:1'])
})

test('a real client that stops reading is sent the latest of each key when it reads again', async () => {
  const { url, backbone, gateway } = await start()
  const client = await connect(url)
  const keys = Array.from({ length: 10 }, (_, n) => `tick:${n}`)
  client.send({ type: 'subscribe', keys })
  await client.next()
  const tcp = (client.socket as any)._socket
  tcp.pause()
  const body = (n: number) => JSON.stringify({ n, pad: 'x'.repeat(130_000) })
  for (let n = 1; n <= 100; n++) {
    for (const key of keys) backbone.value(key, body(n))
    await new Promise(resolve => setImmediate(resolve))
  }
  tcp.resume()
  const seen = new Map<string, number[]>(keys.map(key => [key, []]))
  while (keys.some(key => seen.get(key)?.at(-1) !== 100)) {
    const { key, data } = await client.next()
    seen.get(key)?.push(data.n)
  }
  for (const revisions of seen.values()) {
    expect(revisions.length).toBeLessThan(100)
    expect(revisions).toEqual([...revisions].sort((a, b) => a - b))
  }
  expect(gateway.values.describe('tick:0').subscribers).toBe(1)
})

test.each([
  ['no subprotocol', {}, { status: 101, protocol: undefined }],
  ['one of ours', { 'sec-websocket-protocol': 'keycast.v1.json' }, { status: 101, protocol: 'keycast.v1.json' }],
  [
    'one of ours among others',
    { 'sec-websocket-protocol': 'mqtt, keycast.v1.json' },
    { status: 101, protocol: 'keycast.v1.json' },
  ],
  ['the binary one', { 'sec-websocket-protocol': 'keycast.v1.bytes' }, { status: 101, protocol: 'keycast.v1.bytes' }],
  [
    'both of ours, of which it prefers the first',
    { 'sec-websocket-protocol': 'mqtt, keycast.v1.bytes, keycast.v1.json' },
    { status: 101, protocol: 'keycast.v1.bytes' },
  ],
  ['only unknown ones', { 'sec-websocket-protocol': 'mqtt, keycast.v9' }, { status: 400 }],
  ['an allowed origin', { origin: 'https://example.org' }, { status: 101 }],
  ['another origin', { origin: 'https://evil.example' }, { status: 403 }],
  ['a wrong version', { 'sec-websocket-version': '7' }, { status: 400 }],
  ['no key', { 'sec-websocket-key': '' }, { status: 400 }],
])('an upgrade with %s', async (_, headers, expected) => {
  const { port } = await start({ origins: 'https://example.org, https://www.example.org' })
  expect(await upgrade(port, headers)).toMatchObject(expected)
})

test('WebSockets are at /ws, whatever follows the question mark', async () => {
  const { port } = await start()
  expect(await upgrade(port, {}, '/')).toMatchObject({ status: 404 })
  expect(await upgrade(port, {}, '/ws/')).toMatchObject({ status: 404 })
  expect(await upgrade(port, {}, '/ws?x=1')).toMatchObject({ status: 101 })
})

test('a full gateway says when to come back, and takes the next once a client has left', async () => {
  const { port, url } = await start({ sessionsMax: 1 })
  const client = await connect(url)
  expect(await upgrade(port, {})).toEqual({ status: 503, retryAfter: '5' })
  client.socket.close()
  await client.closed
  let status: number | undefined = 503
  while (status === 503) status = (await upgrade(port, {})).status
  expect(status).toBe(101)
})

test.each([
  ['a binary message', Buffer.from('{}'), true, 1003],
  ['text that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), false, 1007],
  ['a message over the limit', Buffer.alloc(300_000, 'a'), false, 1009],
])('%s closes the connection with the right code', async (_, bytes, binary, code) => {
  const { url } = await start()
  const client = await connect(url)
  client.socket.send(bytes, { binary })
  expect(await client.closed).toBe(code)
})

test('a message in very many fragments closes the connection', async () => {
  const { url } = await start()
  const client = await connect(url)
  for (let n = 0; n < 100; n++) client.socket.send('x', { fin: false })
  expect(await client.closed).toBe(1008)
})

test('a flood ends with 4007, which the client can read, and no other client is touched', async () => {
  const { url } = await start({ requestsPerSecondMax: 100 })
  const [flooding, other] = [await connect(url), await connect(url)]
  for (let n = 0; n < 5_000; n++) flooding.send({ type: 'ping', id: n })
  expect(await flooding.closed).toBe(4007)
  other.send({ type: 'ping' })
  expect(await other.next()).toMatchObject({ type: 'pong' })
})

test('a WebSocket ping is answered with its payload', async () => {
  const { url } = await start()
  const client = await connect(url)
  const pong = new Promise(resolve => client.socket.once('pong', resolve))
  client.socket.ping('are you there')
  expect(String(await pong)).toBe('are you there')
})

test('a client that answers no ping is cut', async () => {
  const { url, port } = await start({ heartbeatMs: 250 })
  const answering = await connect(url)
  const silent = connectTcp(port, '127.0.0.1')
  silent.resume()
  silent.write(
    'GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  await new Promise(resolve => silent.once('close', resolve))
  answering.send({ type: 'ping' })
  expect(await answering.next()).toMatchObject({ type: 'pong' })
})

test('a gateway that drains says so, closes with 1012, and takes no new client', async () => {
  const { url, gateway, port } = await start()
  const clients = [await connect(url), await connect(url), await connect(url)]
  const drained = gateway.drain()
  expect(await upgrade(port, {})).toMatchObject({ status: 503 })
  expect(gateway.notReady()).toBe('draining')
  for (const client of clients) {
    expect(await client.next()).toEqual({ type: 'closing', reconnectAfterMs: expect.any(Number) })
    expect(await client.closed).toBe(1012)
  }
  await drained
})

test('ten unforeseen errors within a minute have a gateway send its clients elsewhere, and exit with 1', async () => {
  const log = createLog({ name: 'test', level: 'silent' })
  const containment = createContainment({ now: () => 0, ends: ['session'], log })
  const { url, gateway } = await start({}, containment)
  const runtime = new EventEmitter()
  const exited = new Promise(resolve => Object.assign(runtime, { exit: resolve }))
  await runService({
    name: 'test',
    log,
    containment,
    graceMs: 10_000,
    start: async () => {},
    stop: [['clients', gateway.drain]],
    runtime: runtime as any,
  })
  const bystander = await connect(url)
  Object.assign(gateway.backbone, {
    watch() {
      throw new TypeError('a bug')
    },
  })
  for (let offence = 0; offence < 10; offence++) {
    const offender = await connect(url)
    offender.send({ type: 'subscribe', id: 1, keys: [`tick:${offence}`] })
    expect(await offender.closed).toBe(1011)
    if (offence < 9) bystander.send({ type: 'ping', id: offence })
    if (offence < 9) expect(await bystander.next()).toMatchObject({ type: 'pong', id: offence })
  }
  expect(await bystander.next()).toMatchObject({ type: 'closing' })
  expect(await bystander.closed).toBe(1012)
  expect(await exited).toBe(1)
})

test('requests that are no upgrade are served beside', async () => {
  const { port } = await start()
  const response = await fetch(`http://127.0.0.1:${port}/`)
  expect(await response.text()).toBe('over HTTP')
})

/** The answer to a request that offers to go on in HTTP/2. */
const offerH2c = async (port: number, method: string) => {
  const socket = connectTcp(port, '127.0.0.1')
  const settings = 'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA'
  socket.write(
    `${method} /v1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n${settings}\r\n\r\n`,
  )
  return text(socket)
}

test('an offer to speak HTTP/2 is ignored, and the request answered as it is', async () => {
  const { port, url } = await start()
  const got = await offerH2c(port, 'GET')
  expect(got).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  expect(got).toMatch(/\r\nConnection: close\r\n/i)
  expect(got).toMatch(/\r\n\r\nover HTTP$/)
  expect(await offerH2c(port, 'HEAD')).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n$/s)
  expect(await offerH2c(port, 'POST')).toMatch(/^HTTP\/1\.1 404 /)
  await connect(url)
})

test('what a request holds that offers to speak HTTP/2 is given back once its client has the answer', async () => {
  const { port, server } = await start()
  const closed = new Promise(resolve => server.once('request', (_, response) => response.once('close', resolve)))
  await offerH2c(port, 'GET')
  await closed
})

test('an upgrade whose client is gone at once harms nothing', async () => {
  const { port, url } = await start()
  for (const path of ['/ws', '/elsewhere']) {
    const socket = connectTcp(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    socket.resetAndDestroy()
  }
  await connect(url)
})
