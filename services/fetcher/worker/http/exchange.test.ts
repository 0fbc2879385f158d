import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { answering, cleanUp, json, setup } from '../pull.fixture.ts'
import { Exchange, type Response } from './exchange.ts'

afterEach(cleanUp)

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc')

test.each([
  ['gzip', gzipSync],
  ['x-gzip', gzipSync],
  ['GZIP', gzipSync],
  ['br', brotliCompressSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
])('content in an encoding (%s) that was not asked for is inflated', async (encoding, compress) => {
  const { pull } = await setup(answering(200, { ...json, 'content-encoding': encoding }, compress('{"a":1}')))

  const { result, body } = await pull()

  expect(result.kind).toBe('value')
  expect(String(body)).toBe('{"a":1}')
})

test('an encoding without content is no failure', async () => {
  const { pull } = await setup(answering(200, { 'content-encoding': 'gzip' }))

  expect((await pull()).body).toHaveLength(0)
})

test('a query stands in the request as in the URL', async () => {
  const { pull, server, requests } = await setup(answering(200, json, '1'))
  const { port } = server.address() as AddressInfo

  await pull({ url: `http://localhost:${port}/a%2Fb/1?x=%20y` })

  expect(requests[0].url).toBe('/a%2Fb/1?x=%20y')
  expect(requests[0].headers.host).toBe(`localhost:${port}`)
})

test('the Host that a namespace sets is the one sent', async () => {
  const { pull, requests } = await setup(answering(200, json, '1'))

  await pull({ headers: { host: 'values.example' } })

  expect(requests[0].headers.host).toBe('values.example')
})

test.each(['a\nb', '\u4e00'])(
  'a header that no request may have (%j) is a failure, and nothing is asked',
  async value => {
    const { pull, requests } = await setup(answering(200, json, '1'))

    const { result } = await pull({ headers: { 'x-broken': value } })

    expect(result).toMatchObject({
      code: 'backend_unreachable',
      message: 'the connection failed (ERR_INVALID_CHAR)',
    })
    expect(requests).toHaveLength(0)
  },
)

/** Pulls twice from a server that sends these very bytes to each request, and ends the connection as is said. */
async function pulled(bytes: string, then: 'keeps' | 'ends' | 'resets' = 'keeps') {
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', () => {
      if (then === 'ends') socket.end(bytes, 'latin1')
      else socket.write(bytes, 'latin1')
    })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = server.address() as AddressInfo
  const { pull } = await setup(() => {})
  const sockets = new Set<Socket>()
  server.on('connection', socket => sockets.add(socket))
  const lease = { url: `http://127.0.0.1:${port}/`, version: 'v', etag: '"1"' }
  try {
    const first = pull(lease)
    if (then === 'resets') {
      await bodyRead() // a reset that comes together with the body looks like an end
      for (const socket of sockets) socket.resetAndDestroy()
    }
    const { result, body } = await first
    const again = { result: { ...result, ...(result.kind === 'failed' && { traceparent: expect.anything() }) }, body }
    if (then !== 'resets') expect(await pull(lease)).toEqual(again) // over what is left of the connection
    return { ...result, body: body?.toString('latin1') }
  } finally {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
}

/** Resolves once some of a body is read. */
function bodyRead() {
  const { onResponseData } = Exchange.prototype
  return new Promise(resolve => {
    function readSome(this: Exchange, ...read: Parameters<Exchange['onResponseData']>) {
      spy.mockRestore()
      onResponseData.apply(this, read)
      resolve(undefined)
    }
    const spy = jest.spyOn(Exchange.prototype, 'onResponseData').mockImplementation(readSome)
  })
}

const ok = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n'

test('an informational response is not the response', async () => {
  const early = 'HTTP/1.1 103 Early Hints\r\nETag: "early"\r\n\r\n'
  expect(await pulled(`${early}${ok}Content-Length: 2\r\n\r\nok`)).toMatchObject({ body: 'ok', etag: undefined })
})

test('a response that switches protocols is a failure, before the deadline', async () => {
  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'
  expect(await pulled(upgrade)).toMatchObject({ message: 'the connection failed (ECONNRESET)' })
})

test.each([
  [304, { kind: 'current', etag: '"1"' }],
  [204, { code: 'not_found' }],
])('%i is read though it declares the length of what it leaves out', async (status, expected) => {
  expect(await pulled(`HTTP/1.1 ${status} X\r\nETag: "2"\r\nContent-Length: 20\r\n\r\n`)).toMatchObject(expected)
})

test.each([
  ['HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nabc'],
  [`${ok}\r\nabc`],
  [`${ok}Connection: close\r\nContent-Length: 3\r\n\r\nabc`],
  [`${ok}Content-Length: 3\r\n\r\nabc`],
])('a response may end with its connection (%j)', async bytes => {
  expect(await pulled(bytes, 'ends')).toMatchObject({ kind: 'value', body: 'abc' })
})

test.each([`${ok}\r\nabc`, `${ok}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`])(
  'a body whose end is a reset (%j) is a lost connection, never a value',
  async bytes => {
    expect(await pulled(bytes, 'resets')).toMatchObject({ message: 'the connection failed within the body' })
  },
)

test('bytes behind a response are not taken for the next one', async () => {
  const more = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother'
  expect(await pulled(`${ok}Content-Length: 2\r\n\r\nok${more}`)).toMatchObject({ body: 'ok' })
})

test('of a header that stands twice the first counts, or both where it is a list', async () => {
  const twice = 'ETag: "a"\r\nETag: "b"\r\nAge: 3\r\nAge: 5\r\nCache-Control: max-age=9\r\nCache-Control: no-store\r\n'
  expect(await pulled(`${ok}${twice}Content-Length: 2\r\n\r\nok`)).toMatchObject({
    etag: '"a"',
    store: false,
    maxAgeMs: 6_000,
  })
})

test('space at the end of a header is no part of it', async () => {
  expect(await pulled(`${ok}ETag: "a" \t\r\nContent-Length: 2 \r\n\r\nok`)).toMatchObject({ etag: '"a"' })
})

test('bytes of a header are Latin-1, as its validator is sent back', async () => {
  expect(await pulled(`${ok}ETag: "\xe9"\r\nContent-Length: 2\r\n\r\nok`)).toMatchObject({ etag: '"\xe9"' })
})

test.each([
  ['a head that is too long', `${ok}X: ${'x'.repeat(17_000)}\r\n\r\n`, 'HPE_HEADER_OVERFLOW'],
  ['a name that is none', `${ok}E tag: 1\r\n\r\n`, 'HPE_INVALID_RESPONSE'],
  ['two lengths', `${ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok`, 'HPE_INVALID_RESPONSE'],
  ['a status that is none', 'HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nok', 'HPE_INVALID_RESPONSE'],
])('%s is an unreachable backend', async (_, bytes, code) => {
  expect(await pulled(bytes)).toMatchObject({
    code: 'backend_unreachable',
    message: `the connection failed (${code})`,
  })
})

test('of a head that is too long no error is made for each further field: that would take its worker a tenth of a second', async () => {
  const failed = jest.spyOn(Exchange.prototype, 'onResponseError')
  for (let i = 0; i < 2; i++) await pulled(`${ok}${'X: y\r\n'.repeat(20_000)}\r\n`)
  const errors = failed.mock.calls.map(([, error]) => error).filter(({ code }) => code === 'UND_ERR_HEADERS_OVERFLOW')
  failed.mockRestore()
  expect(errors.length).toBeGreaterThan(1)
  expect(new Set(errors).size).toBe(1)
})

test('a body in chunks of one byte takes little more memory than its bytes', async () => {
  const bytes = Buffer.alloc(300_000, 'keycast')
  const exchange = new Exchange({ url: '', headers: {}, timeoutMs: 60_000, bytesMax: bytes.length })
  const connection = { destroy() {}, release() {}, isBroken: false }
  const response = new Promise<Response>((resolve, reject) =>
    exchange.begin(
      connection,
      resolve,
      reject,
      () => {},
      () => 0,
    ),
  )
  exchange.onResponseStart(undefined, 200, {})
  collectGarbage()
  const before = process.memoryUsage().heapUsed

  for (let i = 0; i < bytes.length; i++) exchange.onResponseData(undefined, bytes.subarray(i, i + 1))
  collectGarbage()
  const heldBytes = process.memoryUsage().heapUsed - before
  exchange.onResponseEnd()

  expect((await response).body).toEqual(bytes)
  expect(heldBytes).toBeLessThan(10 * bytes.length)
})
