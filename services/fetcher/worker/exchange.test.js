import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { answering, json, setup } from './pull.fixture.js'

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
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())

  await pull({ url: `http://localhost:${port}/a%2Fb/1?x=%20y` })

  expect(requests[0].url).toBe('/a%2Fb/1?x=%20y')
  expect(requests[0].headers.host).toBe(`localhost:${port}`)
})

test('a header that no request may have is a failure, and nothing is asked', async () => {
  const { pull, requests } = await setup(answering(200, json, '1'))

  const { result } = await pull({ headers: { 'x-broken': 'a\nb' } })

  expect(result).toMatchObject({ code: 'backend_unreachable' })
  expect(requests).toHaveLength(0)
})
