import Fastify from 'fastify'
import { readLibrary } from './library.ts'
import { addPage, readChat, readPage } from './page.ts'
import { closeServed, serve } from './test-support.ts'

const page = readPage()
const chat = readChat()

afterEach(closeServed)

function setup(assets = page) {
  const app = Fastify()
  addPage(app, assets)
  return serve(app)
}

test.each([
  ['/', 'Keycast', page],
  ['/chat', 'Keycast chat', chat],
])('%s is a page, and nothing but what the gateway serves may run or load in it', async (path, title, assets) => {
  const get = await setup(assets)
  const response = await get(path)
  expect(response.status).toBe(200)
  expect(response.headers['content-type']).toBe('text/html; charset=utf-8')
  expect(String(response.body)).toContain(`<title>${title}</title>`)
  const policy = String(response.headers['content-security-policy'])
  expect(policy).toMatch(/^default-src 'none'; script-src 'self';/)
  expect(policy).not.toContain('unsafe')
  expect(policy).toContain("frame-ancestors 'none'")
  expect(response.headers['x-content-type-options']).toBe('nosniff')
})

test.each([
  ['page', page.get('/')],
  ['chat', chat.get('/chat')],
])('the %s has no inline script or style', (_, asset) => {
  const html = String(asset?.body)
  expect(html).not.toMatch(/<script(?![^>]* src="\/)/)
  expect(html).not.toMatch(/<style|\sstyle=|\son[a-z]+=/)
})

test('the page names no other host', () => {
  for (const [path, { body }] of page) {
    if (path !== '/mark.svg')
      expect(`${path} ${String(body).replaceAll('http://www.w3.org/2000/svg', '')}`).not.toMatch(/https?:\/\//)
  }
})

test.each([
  ['page', page],
  ['chat', chat],
])('whatever a file of the %s loads is served', (_, assets) => {
  const served = new Set([...assets.keys(), ...page.keys(), ...readLibrary().keys()])
  for (const [path, { body, type }] of assets) {
    const text = String(body)
    const loaded = type.startsWith('text/html')
      ? [...text.matchAll(/(?:src|href)="([^"]+)"/g)]
      : [...text.matchAll(/^(?:import|export) .*'([./][^']+)'$/gm)]
    for (const [, target] of loaded) {
      const { pathname } = new URL(target, `http://host${path}`)
      expect([path, pathname, served.has(pathname)]).toEqual([path, pathname, true])
    }
  }
})

test('a browser gets the protocol’s own files in place of those that re-export them', () => {
  expect(String(page.get('/protocol-keys.js')?.body)).toContain('export function keyProblem')
  expect(String(page.get('/protocol-codes.js')?.body)).toContain('export const errorCodes')
})

test('tests and settings of the page are not served', () => {
  expect([...page.keys()].filter(path => path.includes('test') || path.endsWith('.json'))).toEqual([])
})

test('a file the browser holds is not sent again', async () => {
  const get = await setup()
  const { headers } = await get('/page.js')
  expect(headers['cache-control']).toBe('no-cache')
  const again = await get('/page.js', { headers: { 'if-none-match': String(headers.etag) } })
  expect(again.status).toBe(304)
  expect(again.body).toHaveLength(0)
  expect(again.headers.etag).toBe(headers.etag)
})

test('HEAD tells the length without the file', async () => {
  const get = await setup()
  const response = await get('/page.css', { method: 'HEAD' })
  expect(response.status).toBe(200)
  expect(Number(response.headers['content-length'])).toBe(page.get('/page.css')?.body.length)
  expect(response.body).toHaveLength(0)
})
