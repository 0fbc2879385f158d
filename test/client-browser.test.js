// The client in Chromium, from the files that a gateway can serve: nothing of it was made for a browser by a build.
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { chromium } from 'playwright-core'
import { browserFiles } from '../packages/client/browser-files.js'
import { answers, startBackend } from './support/backend.js'
import { atEnd } from './support/cleanup.js'
import { within } from './support/deadline.js'
import { startSystem } from './support/system.js'

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)

/** A page with nothing on it, and the modules. @returns {Promise<string>} its origin */
async function serve() {
  const files = browserFiles()
  const server = createServer((request, response) => {
    const file = files.get(request.url ?? '')
    if (file) response.writeHead(200, { 'content-type': 'text/javascript' }).end(readFileSync(file))
    else response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><link rel="icon" href="data:,">')
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`
}

test('a page imports it, follows a value by deltas, and knows when there is no network', async () => {
  if (!executablePath) throw new Error('this test needs Chromium: apt-get install chromium')
  const backend = await startBackend()
  const system = await startSystem({ namespaces: { doc: { url: `${backend.origin}/{id}`, refresh: '100ms' } } })
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
  await page.goto(await serve())

  /** Waits until something is true in the page. @param {string} condition of `keycast` and `doc` */
  const until = condition =>
    within(
      page.waitForFunction(`(({ keycast, doc }) => ${condition})(window)`, undefined, { timeout: 0 }),
      () => `"${condition}" in a page that received ${received}`,
    )
  await page.evaluate(`import('/keycast.js').then(({ connect }) => {
    window.keycast = connect('${gateway.url}')
    window.doc = keycast.value('doc:1')
  })`)
  await until('doc.state.value?.revision === 1')
  backend.on('/1', answers.json(JSON.stringify(content(2))))
  await until('doc.state.value?.revision === 2')
  expect(await page.evaluate('window.doc.state.value')).toEqual(content(2))
  expect(received).toContain('delta')
  expect(await page.evaluate(`window.keycast.get('doc:image').then(bytes => [...bytes])`)).toEqual([0, 255])

  await context.setOffline(true)
  await gateway.process.kill()
  await until(`keycast.state.name === 'offline'`)
  await context.setOffline(false)
  await until(`keycast.state.name === 'waiting'`)
  expect(await page.evaluate('window.doc.state.value.revision')).toBe(2)
  expect(complaints).toEqual([])
})
