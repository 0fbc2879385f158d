import Fastify from 'fastify'
import { addLibrary, readLibrary } from './library.ts'
import { readPage } from './page.ts'
import { closeServed, serve } from './test-support.ts'

const library = readLibrary()

let get: Awaited<ReturnType<typeof serve>>
beforeAll(async () => {
  const app = Fastify()
  addLibrary(app, library)
  get = await serve(app)
})
afterAll(closeServed)

test.each([...library.keys()])('%s may be imported by a page of any origin', async path => {
  const { status, headers, body } = await get(path)
  expect(status).toBe(200)
  expect(headers).toMatchObject({
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'no-cache',
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
    'x-content-type-options': 'nosniff',
  })
  expect(headers).not.toHaveProperty('content-security-policy')
  const again = await get(path, { headers: { 'if-none-match': String(headers.etag) } })
  expect([again.status, again.headers['access-control-allow-origin']]).toEqual([304, '*'])
  expect(body.length).toBeGreaterThan(0)
})

test('each file has an ETag of its own', () => {
  expect(new Set([...library.values()].map(({ tag }) => tag)).size).toBe(library.size)
})

test('no file of the page takes a path of the library', () => {
  expect([...readPage().keys()].filter(path => library.has(path))).toEqual([])
})
