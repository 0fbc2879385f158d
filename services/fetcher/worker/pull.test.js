import { createServer } from 'node:http'
import { gzipSync } from 'node:zlib'
import { versionOf } from '@keycast/protocol'
import { createPuller } from './pull.js'

/**
 * @typedef {import('node:http').RequestListener} RequestListener
 * @typedef {import('../work.js').Lease} Lease
 */

/** @type {(() => void)[]} */
let cleanups = []
afterEach(() => {
  for (const cleanup of cleanups) cleanup()
  cleanups = []
})

const secret = 'Bearer of-a-secret'

/** A backend that counts what it is asked, and a puller. @param {RequestListener} handler */
async function setup(handler) {
  /** @type {import('node:http').IncomingMessage[]} */
  const requests = []
  const server = createServer((request, response) => {
    requests.push(request)
    handler(request, response)
  })
  let connections = 0
  server.on('connection', () => connections++)
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const puller = createPuller({ socketsMax: 8 })
  cleanups.push(() => {
    puller.close()
    server.close()
    server.closeAllConnections()
  })
  return {
    server,
    requests,
    connections: () => connections,
    /** @param {Partial<Lease>} [changes] */
    pull: changes => puller.pull(lease({ url: `http://127.0.0.1:${port}/conversations/1`, ...changes })),
  }
}

/** @param {Partial<Lease>} changes @returns {Lease} */
function lease(changes) {
  return {
    type: 'lease',
    lease: 1,
    key: 'conversation:1',
    url: 'http://127.0.0.1:1/',
    headers: { authorization: secret },
    timeoutMs: 5_000,
    bytesMax: 1_000,
    ...changes,
  }
}

/** @param {number} status @param {Record<string, string>} [headers] @param {string | Buffer} [body] @returns {RequestListener} */
const answering =
  (status, headers = {}, body = '') =>
  (_, response) => {
    response.writeHead(status, headers).end(body)
  }

const json = { 'content-type': 'application/json' }

test('200 with JSON is a value, its bytes as they came', async () => {
  const body = '{ "a": 1.0 }\n'
  const { pull, requests } = await setup(
    answering(200, { ...json, etag: 'W/"7"', 'cache-control': 'max-age=10', age: '4' }, body),
  )

  expect(await pull()).toEqual({
    outcome: {
      outcome: 'value',
      status: 200,
      version: versionOf(Buffer.from(body)),
      contentType: 'application/json',
      format: 'json',
      etag: 'W/"7"',
      lastModified: undefined,
      maxAgeMs: 6_000,
      store: true,
    },
    body: Buffer.from(body),
  })
  expect(requests).toHaveLength(1)
})

test('a request carries the headers of its namespace and asks for plain bytes', async () => {
  const { pull, requests } = await setup(answering(200, json, '1'))

  await pull({ headers: { authorization: secret, accept: 'application/hal+json', 'x-tenant': 'é' } })

  const { method, url, headers } = requests[0]
  expect({ method, url }).toEqual({ method: 'GET', url: '/conversations/1' })
  expect(headers).toMatchObject({
    authorization: secret,
    accept: 'application/hal+json',
    'x-tenant': 'é',
    'accept-encoding': 'identity',
    connection: 'keep-alive',
  })
  expect(headers).not.toHaveProperty('if-none-match')
  expect(headers).not.toHaveProperty('if-modified-since')
})

test('validators go back as they came, the entity tag before the date', async () => {
  const { pull, requests } = await setup(answering(304))
  const date = 'Sun, 06 Nov 1994 08:49:37 GMT'

  await pull({ version: 'v', etag: 'W/"é,1"', lastModified: date })
  await pull({ version: 'v', lastModified: date })

  expect(requests[0].headers['if-none-match']).toBe('W/"é,1"')
  expect(requests[0].headers).not.toHaveProperty('if-modified-since')
  expect(requests[1].headers['if-modified-since']).toBe(date)
})

test('304 is current, and keeps the validators it does not repeat', async () => {
  const { pull, requests } = await setup(answering(304, { 'cache-control': 'no-store' }))

  expect(await pull({ version: 'v', etag: '"1"' })).toEqual({
    outcome: {
      outcome: 'current',
      status: 304,
      etag: '"1"',
      lastModified: undefined,
      maxAgeMs: undefined,
      store: false,
    },
  })
  expect(requests).toHaveLength(1)
})

test('304 that nobody asked for is an error of the backend', async () => {
  const { pull } = await setup(answering(304))

  expect((await pull({ version: 'v' })).outcome).toMatchObject({
    outcome: 'failed',
    code: 'backend_error',
    status: 304,
  })
})

test('200 with the bytes of the version held is current, and their validators are the new ones', async () => {
  const { pull } = await setup(answering(200, { ...json, etag: '"2"' }, '{}'))

  const { outcome, body } = await pull({ version: versionOf(Buffer.from('{}')), etag: '"1"' })

  expect(outcome).toMatchObject({ outcome: 'current', status: 200, etag: '"2"' })
  expect(body).toBeUndefined()
})

const later = new Date(Date.now() + 60_000).toUTCString()
const now = new Date(Date.parse(later) - 60_000).toUTCString()

test.each([
  [404, { 'cache-control': 'max-age=5' }, { code: 'not_found', maxAgeMs: 5_000 }],
  [410, {}, { code: 'not_found' }],
  [204, {}, { code: 'not_found' }],
  [429, {}, { code: 'backend_throttled', retryAfterMs: undefined }],
  [429, { 'retry-after': '7' }, { code: 'backend_throttled', retryAfterMs: 7_000 }],
  [429, { 'retry-after': later, date: now }, { code: 'backend_throttled', retryAfterMs: 60_000 }],
  [401, {}, { code: 'backend_refused' }],
  [301, { location: 'http://127.0.0.1:1/' }, { code: 'backend_redirect' }],
  [500, {}, { code: 'backend_error' }],
  [503, { 'retry-after': '2' }, { code: 'backend_error', retryAfterMs: 2_000 }],
])('%i with %j is told as it is meant, after one request', async (status, headers, expected) => {
  const { pull, requests } = await setup(answering(status, headers))

  const { outcome, body } = await pull()

  expect(outcome).toMatchObject({ outcome: 'failed', status, ...expected })
  expect(body).toBeUndefined()
  expect(requests).toHaveLength(1)
})

test('a backend that never answers meets the deadline, and its connection is given up', async () => {
  const { pull, requests, server } = await setup(() => {})
  const closed = new Promise(resolve => server.once('connection', socket => socket.once('close', resolve)))

  expect((await pull({ timeoutMs: 60 })).outcome).toEqual({
    outcome: 'failed',
    code: 'backend_timeout',
    message: 'no whole answer within 60 ms',
  })
  await closed
  expect(requests).toHaveLength(1)
})

test('a body that drips past the deadline meets it too', async () => {
  const { pull, requests, server } = await setup((_, response) => {
    response.writeHead(200, json).write('[')
    const drip = setInterval(() => response.write(' '), 10)
    response.once('close', () => clearInterval(drip))
  })
  const closed = new Promise(resolve => server.once('connection', socket => socket.once('close', resolve)))

  expect((await pull({ timeoutMs: 100 })).outcome).toMatchObject({ code: 'backend_timeout', status: 200 })
  await closed
  expect(requests).toHaveLength(1)
})

test('a slow answer within the deadline is a value', async () => {
  const { pull } = await setup((_, response) => {
    response.writeHead(200, json).write('[')
    setTimeout(() => response.end(']'), 150)
  })

  expect((await pull({ timeoutMs: 5_000 })).outcome.outcome).toBe('value')
})

test.each([
  ['declared', { ...json, 'content-length': '1001' }],
  ['chunked', json],
])('a body over the cap, %s, is too large', async (_, headers) => {
  const { pull, requests } = await setup(answering(200, headers, JSON.stringify('x'.repeat(999))))

  expect((await pull()).outcome).toMatchObject({ code: 'too_large', message: 'the content is over 1000 bytes' })
  expect(requests).toHaveLength(1)
})

test('a body at the cap is a value', async () => {
  const { pull } = await setup(answering(200, json, JSON.stringify('x'.repeat(998))))

  expect((await pull()).body).toHaveLength(1_000)
})

test('an endless body ends at the cap', async () => {
  const { pull } = await setup((_, response) => {
    response.writeHead(200, json)
    const more = () => {
      while (response.write('x'.repeat(10_000)));
    }
    response.on('drain', more)
    more()
  })

  expect((await pull()).outcome).toMatchObject({ code: 'too_large' })
})

test.each([
  [404, 'not_found'],
  [503, 'backend_error'],
])('%i is told by its status even if its page is over the cap', async (status, code) => {
  const { pull } = await setup(answering(status, { 'retry-after': '1' }, 'x'.repeat(5_000)))

  expect((await pull()).outcome).toMatchObject({ code, status })
})

test.each([
  ['declared', { ...json, 'content-length': '100' }],
  ['chunked', json],
])('a %s body cut short is a lost connection, never a value', async (_, headers) => {
  const { pull, requests } = await setup((_, response) => {
    response.writeHead(200, headers)
    response.write('[1]', () => response.destroy())
  })

  expect((await pull()).outcome).toMatchObject({
    code: 'backend_unreachable',
    message: 'the connection failed within the body',
    status: 200,
  })
  expect(requests).toHaveLength(1)
})

test('a connection reset before the answer is a lost connection', async () => {
  const { pull, requests } = await setup(request => request.socket.resetAndDestroy())

  expect((await pull()).outcome).toMatchObject({
    code: 'backend_unreachable',
    message: 'the connection failed (ECONNRESET)',
  })
  expect(requests).toHaveLength(1)
})

test('a connection that is reset when used again is lost as well: nothing is asked twice', async () => {
  let asked = 0
  const { pull, requests, connections } = await setup((request, response) => {
    asked += 1
    if (asked === 2) request.socket.resetAndDestroy()
    else response.writeHead(200, json).end('1')
  })

  expect((await pull()).outcome.outcome).toBe('value')
  expect((await pull()).outcome).toMatchObject({ code: 'backend_unreachable' })
  expect({ requests: requests.length, connections: connections() }).toEqual({ requests: 2, connections: 1 })
  expect((await pull()).outcome.outcome).toBe('value')
})

test('a refused connection is told without the address', async () => {
  const { pull, server } = await setup(() => {})
  await new Promise(resolve => server.close(resolve))

  expect((await pull()).outcome).toMatchObject({
    code: 'backend_unreachable',
    message: 'the connection failed (ECONNREFUSED)',
  })
})

test('a name that does not resolve is an unreachable backend', async () => {
  const { pull } = await setup(() => {})

  // A label over 63 characters: no resolver asks the network for it.
  const { outcome } = await pull({ url: `http://${'x'.repeat(64)}.invalid/` })

  expect(outcome).toMatchObject({ code: 'backend_unreachable', message: expect.stringMatching(/E(NOTFOUND|AI_)/) })
})

test('what is no HTTP is an unreachable backend', async () => {
  const { pull } = await setup(request => request.socket.end('SSH-2.0-OpenSSH\r\n'))

  expect((await pull()).outcome).toMatchObject({
    code: 'backend_unreachable',
    message: expect.stringContaining('HPE_'),
  })
})

test('content that was compressed without being asked for is inflated', async () => {
  const { pull } = await setup(answering(200, { ...json, 'content-encoding': 'gzip' }, gzipSync('{"a":1}')))

  const { outcome, body } = await pull()

  expect(outcome).toMatchObject({ outcome: 'value', version: versionOf(Buffer.from('{"a":1}')) })
  expect(String(body)).toBe('{"a":1}')
})

test('content that is over the cap once inflated is too large', async () => {
  const bomb = gzipSync(JSON.stringify('x'.repeat(500_000)))
  const { pull } = await setup(answering(200, { ...json, 'content-encoding': 'gzip' }, bomb))

  expect(bomb.length).toBeLessThan(1_000)
  expect((await pull()).outcome).toMatchObject({ code: 'too_large' })
})

test.each([
  ['gzip', 'not gzip'],
  ['br', 'not brotli'],
  ['exi', 'an encoding nobody here knows'],
])('content that is not in the encoding it names (%s) is invalid', async (encoding, body) => {
  const { pull } = await setup(answering(200, { ...json, 'content-encoding': encoding }, body))

  expect((await pull()).outcome).toMatchObject({ code: 'invalid_content', status: 200 })
})

test('a compressed body cut short is a lost connection', async () => {
  const zipped = gzipSync(JSON.stringify('keycast'.repeat(50)))
  const { pull } = await setup((_, response) => {
    response.writeHead(200, { ...json, 'content-encoding': 'gzip' })
    response.write(zipped.subarray(0, zipped.length - 9), () => response.destroy())
  })

  expect((await pull()).outcome).toMatchObject({ code: 'backend_unreachable' })
})

test('304 and 404 that name an encoding but have no body are read', async () => {
  const { pull } = await setup((request, response) =>
    response.writeHead(request.headers['if-none-match'] ? 304 : 404, { 'content-encoding': 'gzip' }).end(),
  )

  expect((await pull({ version: 'v', etag: '"1"' })).outcome.outcome).toBe('current')
  expect((await pull()).outcome).toMatchObject({ code: 'not_found' })
})

test('content that is not what its type says is invalid', async () => {
  const { pull } = await setup(answering(200, json, '{"a":'))

  expect((await pull()).outcome).toMatchObject({
    code: 'invalid_content',
    message: 'the JSON does not parse',
    status: 200,
  })
})

test('text is transcoded by the charset of its type', async () => {
  const { pull } = await setup(answering(200, { 'content-type': 'text/plain; charset=latin1' }, Buffer.from([0xe9])))

  const { outcome, body } = await pull()

  expect(outcome).toMatchObject({ format: 'text', contentType: 'text/plain;charset=utf-8' })
  expect(String(body)).toBe('é')
})

test('content without a type is bytes', async () => {
  const { pull } = await setup((_, response) => response.end('{}'))

  expect((await pull()).outcome).toMatchObject({ format: 'base64', contentType: 'application/octet-stream' })
})

test('connections are kept and used again, after failures of the backend too', async () => {
  const answers = [answering(200, json, '1'), answering(304), answering(404, {}, 'page'), answering(500, {}, 'page')]
  let next = 0
  const { pull, connections } = await setup((request, response) => answers[next++](request, response))

  for (const _ of answers) await pull({ version: 'v', etag: '"1"' })

  expect(connections()).toBe(1)
})

test('an idle connection is closed from our side first', async () => {
  const { pull, server } = await setup(answering(200, json, '1'))
  server.keepAliveTimeout = 0 // never
  const closed = new Promise(resolve => server.once('connection', socket => socket.once('close', resolve)))

  await pull()

  await closed
})

test('a proxy of the environment is not used', async () => {
  const { pull } = await setup(answering(200, json, '1'))
  const before = process.env
  process.env = {
    ...before,
    HTTP_PROXY: 'http://127.0.0.1:1',
    http_proxy: 'http://127.0.0.1:1',
    no_proxy: '',
    NO_PROXY: '',
  }
  cleanups.push(() => {
    process.env = before
  })

  expect((await pull()).outcome.outcome).toBe('value')
})

test.each([
  ['a hang', () => {}],
  ['a reset', request => request.socket.resetAndDestroy()],
  ['no HTTP', request => request.socket.end('nonsense\r\n\r\n')],
  ['a body over the cap', answering(200, json, 'x'.repeat(5_000))],
  ['an error', answering(500, {}, secret)],
  ['a body that is invalid', answering(200, json, secret)],
])('no failure (%s) repeats the headers of the namespace', async (_, /** @type {RequestListener} */ handler) => {
  const { pull } = await setup(handler)

  const { outcome } = await pull({ timeoutMs: 200 })

  expect(outcome.outcome).toBe('failed')
  expect(JSON.stringify(outcome)).not.toContain('secret')
})
