// The client in Chromium, as a gateway serves it to pages of other origins, and the cost of a change there.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { browserFiles } from '../../packages/client/browser-files.js'
import { answers, type Backend, startBackend } from '../support/backend.ts'
import { launchChromium } from '../support/chromium.ts'
import { within } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { startSite } from '../support/sites.ts'
import { PATIENCE, type System, startSystem } from '../support/system.ts'
import { startSwitch } from '../support/tcp-switch.ts'

let backend: Backend
let system: System
let browser: Browser

beforeAll(async () => {
  backend = await startBackend()
  system = await startSystem({
    namespaces: {
      doc: { url: `${backend.origin}/{id}`, refresh: '100ms', timeout: PATIENCE },
      conversation: { url: `${backend.origin}/conversations/{id}`, timeout: PATIENCE },
      calm: { url: `${backend.origin}/{id}`, refresh: '1h' },
    },
    gateways: 0,
  })
  browser = await launchChromium()
})

/**
 * A page of another origin than the gateway's.
 *
 * @param head of its HTML
 * @returns its address
 */
const serve = (head = ''): Promise<string> =>
  startSite((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' })
    response.end(`<!doctype html><link rel="icon" href="data:,">${head}`)
  })

/**
 * An import map with the hash of each module, as docs/client-recipes.md has it.
 *
 * @param origin of the gateway
 * @param suffix of each file
 */
function importMap(origin: string, suffix = '') {
  const integrity = [...browserFiles()].map(([path, file]) => {
    const hash = createHash('sha384').update(readFileSync(file)).update(suffix).digest('base64')
    return [`${origin}${path}`, `sha384-${hash}`]
  })
  return `<script type="importmap">${JSON.stringify({ integrity: Object.fromEntries(integrity) })}</script>`
}

test('a page of another origin imports it by its hashes, follows a value by deltas, and knows of a lost network', async () => {
  const gateway = await system.startGateway()
  const content = (revision: number) => ({ revision, filler: 'this stays as it is. '.repeat(50) })
  backend.on('/1', answers.json(JSON.stringify(content(1))))
  backend.on('/image', answers.content(Buffer.from([0, 255]), 'image/png'))

  const context = await browser.newContext()
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', error => complaints.push(error.message))
  const received: string[] = []
  page.on('websocket', socket => {
    socket.on('framereceived', ({ payload }) => received.push(JSON.parse(payload.toString().split('\n')[0]).type))
  })
  await page.goto(await serve(importMap(gateway.http)))

  /** Waits until something is true in the page. @param condition of `keycast` and `doc` */
  const until = (condition: string) =>
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
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
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
  await context.close()
})

/** Enough for a median that stays. */
const CHANGES = 60

/** So much of the conversation's history that the engine has compiled what runs. */
const WARM = 20

/** Bytes of a change of one message, with WebSocket, permessage-deflate and all: what others send is the whole. */
const CHANGE_BYTES_MAX = 500

test('a changed message in a conversation of 130 KB costs under 500 bytes on the wire, and little of the page', async () => {
  const gateway = await system.startGateway()
  const wire = await startSwitch(gateway.port)
  const words = ['coffee', 'lunch', 'invoice', 'meeting', 'weather', 'garden', 'train', 'holiday', 'budget', 'window']
  const messages = Array.from({ length: 900 }, (_, id) => ({
    id,
    from: `user-${id % 7}`,
    at: 1_700_000_000_000 + id * 61_337,
    text: Array.from({ length: 14 }, (_, n) => words[(id * (n + 3) + n * n) % words.length]).join(' '),
  }))
  let revision = 0
  const text = () => JSON.stringify({ revision, messages })
  backend.on('/long', (_, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(text())
  })
  expect(text().length).toBeGreaterThan(130_000)

  const page = await browser.newPage()
  await page.goto(await serve())
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Performance.enable')
  const taskMs = async () => {
    const { metrics } = await devtools.send('Performance.getMetrics')
    return 1_000 * (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN)
  }
  // The page awaits a revision by an event: one that asks again and again would be measured itself.
  await page.evaluate(`import('${gateway.http}/keycast.js').then(({ connect }) => {
    const doc = connect('ws://127.0.0.1:${wire.port}/ws').value('calm:long')
    window.reached = revision => new Promise(resolve => {
      const off = doc.on('change', ({ value }) => value?.revision === revision && (off(), resolve()))
    })
  })`)
  await within(page.evaluate('reached(0)'), 'the conversation')

  const bytes = []
  const milliseconds = []
  for (revision = 1; revision <= WARM + CHANGES; revision += 1) {
    messages[(revision * 37) % messages.length].text += ` said again ${revision}`
    const arrived = page.evaluate(`reached(${revision})`)
    const before = { bytes: wire.bytesBack(), ms: await taskMs() }
    await gateway.refresh(['calm:long'])
    await within(arrived, () => `revision ${revision}`)
    if (revision <= WARM) continue
    bytes.push(wire.bytesBack() - before.bytes)
    milliseconds.push((await taskMs()) - before.ms)
  }
  const median = (figures: number[]) => figures.sort((a, b) => a - b)[figures.length / 2]
  show(
    `a changed message in ${Math.round(text().length / 1_000)} KB: ${median(bytes)} bytes on the wire at the median, ${bytes.at(-1)} at most`,
  )
  show(`${median(milliseconds).toFixed(1)} ms of the page's main thread at the median`)
  expect(bytes.at(-1)).toBeLessThan(CHANGE_BYTES_MAX)
})
