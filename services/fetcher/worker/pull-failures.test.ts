import type { RequestListener } from 'node:http'
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib'
import { answering, cleanUp, json, secret, setup } from './pull.fixture.ts'

afterEach(cleanUp)

test('a backend that never answers meets the deadline, and its connection is given up', async () => {
  const { pull, requests, server } = await setup(() => {})
  const closed = new Promise(resolve => server.once('connection', socket => socket.once('close', resolve)))

  expect((await pull({ timeoutMs: 60 })).result).toEqual({
    kind: 'failed',
    code: 'backend_timeout',
    message: 'no whole answer within 60 ms',
    traceparent: expect.stringMatching(/^00-/),
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

  expect((await pull({ timeoutMs: 100 })).result).toMatchObject({ code: 'backend_timeout', status: 200 })
  await closed
  expect(requests).toHaveLength(1)
})

test.each([
  ['declared', { ...json, 'content-length': '1001' }],
  ['chunked', json],
])('a body over the cap, %s, is too large', async (_, headers) => {
  const { pull, requests } = await setup(answering(200, headers, JSON.stringify('x'.repeat(999))))

  expect((await pull()).result).toMatchObject({ code: 'too_large', message: 'the content is over 1000 bytes' })
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

  expect((await pull()).result).toMatchObject({ code: 'too_large' })
})

test.each([
  [404, 'not_found'],
  [503, 'backend_error'],
])('%i is told by its status even if its page is over the cap', async (status, code) => {
  const { pull } = await setup(answering(status, { 'retry-after': '1' }, 'x'.repeat(5_000)))

  expect((await pull()).result).toMatchObject({ code, status })
})

test.each([
  ['declared', { ...json, 'content-length': '100' }],
  ['chunked', json],
])('a %s body cut short is a lost connection, never a value', async (_, headers) => {
  const { pull, requests } = await setup((_, response) => {
    response.writeHead(200, headers)
    response.write('[1]', () => response.destroy())
  })

  expect((await pull()).result).toMatchObject({
    code: 'backend_unreachable',
    message: 'the connection failed within the body',
    status: 200,
  })
  expect(requests).toHaveLength(1)
})

test('a connection reset before the answer is a lost connection', async () => {
  const { pull, requests } = await setup(request => request.socket.resetAndDestroy())

  expect((await pull()).result).toMatchObject({
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

  expect((await pull()).result.kind).toBe('value')
  expect((await pull()).result).toMatchObject({ code: 'backend_unreachable' })
  expect({ requests: requests.length, connections: connections() }).toEqual({ requests: 2, connections: 1 })
  expect((await pull()).result.kind).toBe('value')
})

test('a refused connection is told without the address', async () => {
  const { pull, server } = await setup(() => {})
  await new Promise(resolve => server.close(resolve))

  expect((await pull()).result).toMatchObject({
    code: 'backend_unreachable',
    message: 'the connection failed (ECONNREFUSED)',
  })
})

test('a name that does not resolve is an unreachable backend', async () => {
  const { pull } = await setup(() => {})

  // A label over 63 characters: no resolver asks the network for it.
  const { result } = await pull({ url: `http://${'x'.repeat(64)}.invalid/` })

  expect(result).toMatchObject({ code: 'backend_unreachable', message: expect.stringMatching(/E(NOTFOUND|AI_)/) })
})

test('what is no HTTP is an unreachable backend', async () => {
  const { pull } = await setup(request => request.socket.end('SSH-2.0-OpenSSH\r\n'))

  expect((await pull()).result).toMatchObject({
    code: 'backend_unreachable',
    message: expect.stringContaining('HPE_'),
  })
})

/** Its own choice takes fifty times as long for the same bomb. */
const brotliQuickly = (bytes: Buffer) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } })

test.each([
  ['gzip', gzipSync, 500_000],
  ['gzip', gzipSync, 100_000_000],
  ['br', brotliQuickly, 100_000_000],
  ['deflate', deflateSync, 50_000_000],
])('a bomb in %s is too large', async (encoding, compress, bytes) => {
  const bomb = compress(Buffer.alloc(bytes, '1'))
  const { pull } = await setup(answering(200, { ...json, 'content-encoding': encoding }, bomb))
  const { result } = await pull({ bytesMax: 200_000 })

  expect(result).toMatchObject({ code: 'too_large' })
})

test.each([
  ['gzip', 'not gzip'],
  ['br', 'not brotli'],
  ['exi', 'an encoding nobody here knows'],
  ['constructor', 'a name that every object knows'],
  ['__proto__', 'a name that every object knows'],
])('content that is not in the encoding it names (%s) is invalid', async (encoding, body) => {
  const { pull } = await setup(answering(200, { ...json, 'content-encoding': encoding }, body))

  expect((await pull()).result).toMatchObject({ code: 'invalid_content', status: 200 })
})

test('a compressed body cut short is a lost connection', async () => {
  const zipped = gzipSync(JSON.stringify('keycast'.repeat(50)))
  const { pull } = await setup((_, response) => {
    response.writeHead(200, { ...json, 'content-encoding': 'gzip' })
    response.write(zipped.subarray(0, zipped.length - 9), () => response.destroy())
  })

  expect((await pull()).result).toMatchObject({ code: 'backend_unreachable' })
})

test('content that is not what its type says is invalid', async () => {
  const { pull } = await setup(answering(200, json, '{"a":'))

  expect((await pull()).result).toMatchObject({
    code: 'invalid_content',
    message: 'the JSON does not parse',
    status: 200,
  })
})

test.each([
  ['a hang', () => {}],
  ['a reset', request => request.socket.resetAndDestroy()],
  ['no HTTP', request => request.socket.end('nonsense\r\n\r\n')],
  ['a body over the cap', answering(200, json, 'x'.repeat(5_000))],
  ['an error', answering(500, {}, secret)],
  ['a body that is invalid', answering(200, json, secret)],
])('no failure (%s) repeats the headers of the namespace', async (_, handler: RequestListener) => {
  const { pull } = await setup(handler)

  const { result } = await pull({ timeoutMs: 200 })

  expect(result.kind).toBe('failed')
  expect(JSON.stringify(result)).not.toContain('secret')
})

describe('redirects that are to be followed', () => {
  const redirecting = (to: (path: string) => string, status = 302) =>
    setup((request, response) => {
      if (request.url === '/new') return response.writeHead(200, json).end('1')
      return response.writeHead(status, { location: to(request.url ?? '') }).end()
    })

  test.each([301, 302, 303, 307, 308])('lead to another path of the origin: %i', async status => {
    const { pull, requests } = await redirecting(() => '/new#part', status)
    expect((await pull({ redirects: true })).result).toMatchObject({ kind: 'value' })
    expect(requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ['/conversations/1', secret],
      ['/new', secret],
    ])
    expect((await pull()).result).toMatchObject({ code: 'backend_redirect', status })
  })

  test.each(['http://127.0.0.1:1/new', '//elsewhere.example/new', 'https://127.0.0.1/new', 'http://', 'file:///new'])(
    'never lead to %s',
    async location => {
      const { pull, requests } = await redirecting(() => location)
      expect((await pull({ redirects: true })).result).toMatchObject({ code: 'backend_redirect' })
      expect(requests).toHaveLength(1)
    },
  )

  test('end, also where each leads to the next', async () => {
    const { pull, requests } = await redirecting(path => `${path}/on`)
    expect((await pull({ redirects: true })).result).toMatchObject({ code: 'backend_redirect' })
    expect(requests).toHaveLength(6)
  })

  test('take no validators along, and bring none: those of another URL may be the same for other content', async () => {
    const date = 'Sun, 06 Nov 1994 08:49:37 GMT'
    const { pull, requests } = await setup((request, response) => {
      if (request.url !== '/new') return response.writeHead(302, { location: '/new' }).end()
      const isHeld = request.headers['if-none-match'] === '"1"' || request.headers['if-modified-since'] === date
      return response
        .writeHead(isHeld ? 304 : 200, { ...json, etag: '"1"', 'last-modified': date })
        .end(isHeld ? undefined : '1')
    })
    for (const validators of [{ etag: '"1"' }, { lastModified: date }]) {
      const { result } = await pull({ redirects: true, version: 'v', ...validators })
      expect(result).toMatchObject({ kind: 'value', etag: undefined, lastModified: undefined })
    }
    // The URL itself gave them.
    expect(requests[0].headers['if-none-match']).toBe('"1"')
  })

  test('make no GET of a POST', async () => {
    const { pull } = await redirecting(() => '/new', 303)
    expect((await pull({ redirects: true }, '{}')).result).toMatchObject({ code: 'backend_redirect' })
    const kept = await redirecting(() => '/new', 308)
    expect((await kept.pull({ redirects: true }, '{}')).result).toMatchObject({ kind: 'value' })
    expect(kept.requests.map(({ method }) => method)).toEqual(['POST', 'POST'])
  })
})
