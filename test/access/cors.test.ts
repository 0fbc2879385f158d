// Pages of other origins ask over HTTP, through nginx, in Chromium: those that GATEWAY_ORIGINS names may read values and
// errors, others nothing but what is for everybody.
import { randomBytes } from 'node:crypto'
import type { Page } from 'playwright-core'
import { answers, startBackend } from '../support/backend.ts'
import { launchChromium } from '../support/chromium.ts'
import { startProxy } from '../support/proxy.ts'
import { startSite } from '../support/sites.ts'
import { PATIENCE, startSystem } from '../support/system.ts'

/** An origin with an empty page. */
const startEmpty = () =>
  startSite((_, response) => response.setHeader('content-type', 'text/html').end('<!doctype html>'))

const [named, other] = await Promise.all([startEmpty(), startEmpty()])
const backend = await startBackend()
backend.on('/1', answers.json('{"n":1}'))
const { gateways } = await startSystem({
  namespaces: { doc: { url: `${backend.origin}/{id}`, timeout: PATIENCE } },
  access: { anonymous: { read: ['doc:*'] }, tokens: [{ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] }] },
  env: { GATEWAY_ORIGINS: named, JWT_SECRET: randomBytes(48).toString('base64') },
})
const proxy = await startProxy([gateways[0].port])
const browser = await launchChromium()
const open = async (site: string) => {
  const page = await browser.newPage({ ignoreHTTPSErrors: true })
  await page.goto(site)
  return page
}
const [namedPage, otherPage] = await Promise.all([named, other].map(open))

/** What a page reads; `undefined` if its browser keeps that from it. */
async function read(page: Page, path: string, headers: Record<string, string> = {}) {
  const asked = JSON.stringify([proxy.url(path), { headers }])
  const seen = await page.evaluate(
    `fetch(...${asked}).then(async answer => ({
      status: answer.status,
      headers: Object.fromEntries(answer.headers),
      body: await answer.text(),
    }), error => error.message === 'Failed to fetch' ? undefined : Promise.reject(error))`,
  )
  return seen as { status: number; headers: Record<string, string>; body: string } | undefined
}

test('a page of a named origin reads a value, its ETag and its cursor, and asks with them', async () => {
  const value = await read(namedPage, '/v1/values/doc:1')
  expect(value).toMatchObject({ status: 200, body: '{"n":1}', headers: { 'keycast-cursor': expect.any(String) } })
  const etag = String(value?.headers.etag)
  // Not one of those that need no asking first.
  expect(await read(namedPage, '/v1/values/doc:1', { 'If-None-Match': etag })).toMatchObject({
    status: 304,
    headers: { etag },
  })
})

test('it reads what is wrong, also with its token and with what nginx answers itself', async () => {
  expect(await read(namedPage, '/v1/values/doc:none')).toMatchObject({ status: 404 })
  expect(await read(namedPage, '/v1/values/doc:1', { Authorization: 'Bearer none' })).toMatchObject({
    status: 401,
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
    body: expect.stringContaining('token_refused'),
  })
  expect(await read(namedPage, '/v1/nothing')).toMatchObject({ status: 404 })
})

test('a page of another origin reads nothing of that, and waits like everybody', async () => {
  expect(await read(otherPage, '/v1/values/doc:1')).toBeUndefined()
  expect(await read(otherPage, '/v1/values/doc:none')).toBeUndefined()
  expect(await read(otherPage, '/v1/wait/doc:1?after=x')).toMatchObject({ status: 400 })
})
