// The client in Chromium, as a gateway serves it to pages of other origins: nothing of it is made by a build.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { chromium } from 'playwright-core'
import { browserFiles } from '../packages/client/browser-files.js'
import { answers, startBackend } from './support/backend.js'
import { atEnd } from './support/cleanup.js'
import { within } from './support/deadline.js'
import { startSystem } from './support/system.js'

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)

/**
 * A page of another origin than the gateway's.
 *
 * @param {string} [head] of its HTML
 * @returns {Promise<string>} its address
 */
async function serve(head = '') {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' })
    response.end(`<!doctype html><link rel="icon" href="data:,">${head}`)
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`
}

/**
 * An import map with the hash of each module, as docs/client.md has it.
 *
 * @param {string} origin of the gateway
 * @param {string} [suffix] of each file
 */
function importMap(origin, suffix = '') {
  const integrity = [...browserFiles()].map(([path, file]) => {
    const hash = createHash('sha384').update(readFileSync(file)).update(suffix).digest('base64')
    return [`${origin}${path}`, `sha384-${hash}`]
  })
  return `<script type="importmap">${JSON.stringify({ integrity: Object.fromEntries(integrity) })}</script>`
}

test('a page of another origin imports it by its hashes, follows a value by deltas, and knows of a lost network', async () => {
  if (!executablePath) throw new Error('this test needs Chromium: apt-get install chromium')
  const backend = await startBackend()
  const system = await startSystem({
    namespaces: {
      doc: { url: `${backend.origin}/{id}`, refresh: '100ms' },
      conversation: { url: `${backend.origin}/conversations/{id}` },
    },
  })
  const [gateway] = system.gateways
  const content = (/** @type {number} */ revision) => ({ revision, filler: 'this stays as it is. '.repeat(50) })
  backend.on('/1', answers.json(JSON.stringify(content(1))))
  backend.on('/image', answers.content(Buffer.from([0, 255]), 'image/png'))

  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  atEnd(() => browser.close())
  const context = await browser.newContext()
  const page = await context.newPage()
  /** @type {string[]} */
  const complaints = []
  page.on('pageerror', error => complaints.push(error.message))
  /** @type {string[]} */
  const received = []
  page.on('websocket', socket => {
    socket.on('framereceived', ({ payload }) => received.push(JSON.parse(payload.toString().split('\n')[0]).type))
  })
  await page.goto(await serve(importMap(gateway.http)))

  /** Waits until something is true in the page. @param {string} condition of `keycast` and `doc` */
  const until = condition =>
    within(
      page.waitForFunction(`(({ keycast, doc }) => ${condition})(window)`, undefined, { timeout: 0 }),
      () => `"${condition}" in a page that received ${received}`,
    )
  await page.evaluate(`import('${gateway.http}/keycast.js').then(({ connect }) => {
    window.keycast = connect('${gateway.url}')
    window.doc = keycast.value('doc:1')
  })`)
  await until('doc.state.value?.revision === 1')
  backend.on('/1', answers.json(JSON.stringify(content(2))))
  await until('doc.state.value?.revision === 2')
  expect(await page.evaluate('window.doc.state.value')).toEqual(content(2))
  expect(received).toContain('delta')
  expect(await page.evaluate(`window.keycast.get('doc:image').then(bytes => [...bytes])`)).toEqual([0, 255])

  backend.on('/conversations/1', answers.json('{"title":"Lunch","revision":7}'))
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const [, code] = readme.match(/^```js\n([\s\S]*?)^```/m) ?? []
  const first = await context.newPage()
  await first.goto(
    await serve(
      `<body><script type="module">${code.replaceAll('127.0.0.1:8080', new URL(gateway.http).host)}</script>`,
    ),
  )
  await first.getByText('live: Lunch, revision 7').waitFor()
  await first.close()

  const suspicious = await context.newPage()
  await suspicious.goto(await serve(importMap(gateway.http, 'changed')))
  const refused = await suspicious.evaluate(`import('${gateway.http}/keycast.js').catch(error => error.name)`)
  expect(refused).toBe('TypeError')
  await suspicious.close()

  await context.setOffline(true)
  await gateway.process.kill()
  await until(`keycast.state.name === 'offline'`)
  await context.setOffline(false)
  await until(`keycast.state.name === 'waiting'`)
  expect(await page.evaluate('window.doc.state.value.revision')).toBe(2)
  expect(complaints).toEqual([])
})
