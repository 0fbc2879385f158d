// The page in Chromium, as a person sees it, with a real gateway and a scripted backend.
import type { Browser } from 'playwright-core'
import { answers, startBackend } from '../support/backend.ts'
import { launchChromium } from '../support/chromium.ts'
import { startSystem } from '../support/system.ts'

let backend: Awaited<ReturnType<typeof startBackend>>
let system: Awaited<ReturnType<typeof startSystem>>
let browser: Browser

beforeAll(async () => {
  backend = await startBackend()
  system = await startSystem({
    namespaces: { doc: { url: `${backend.origin}/{id}`, refresh: '100ms', timeout: '1s' } },
  })
  browser = await launchChromium()
})

// A page left open would go on drawing what changes, for as long as the file runs.
afterEach(() => Promise.all(browser.contexts().map(context => context.close())))

async function open(hash: string) {
  const context = await browser.newContext()
  const page = await context.newPage()
  /** The browser's complaints, a breach of the Content-Security-Policy included. */
  const complaints: string[] = []
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => {
    const isOfConnection =
      message.text().includes('WebSocket connection') || /\/v1\/|\/keycast\.js$/.test(message.location().url)
    if (message.type() === 'error' && !isOfConnection) complaints.push(message.text())
  })
  // Chromium drops what it is loading when a network interface comes or goes, as with any container started on this machine.
  let wasDropped = false
  page.on('requestfailed', request => {
    wasDropped ||= request.failure()?.errorText === 'net::ERR_NETWORK_CHANGED'
  })
  await page.goto(`${system.gateways[0].http}/${hash}`)
  while (wasDropped) {
    wasDropped = false
    complaints.length = 0
    await page.reload()
  }
  const card = (key: string) => page.getByRole('article', { name: new RegExp(key) })
  return { page, card, complaints }
}

test('a key typed is shown, each change of it marked, and the address names it', async () => {
  const items = Array.from({ length: 100 }, (_, id) => ({ id, text: `item ${id}` }))
  backend.on('/list', answers.json(JSON.stringify({ title: 'one', items })))
  const { page, card, complaints } = await open('')
  await page.getByText('Nothing is being watched').waitFor()
  const loaded = await page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
  // It has no rooms, and need not load what follows them.
  expect(loaded).toContain(`${system.gateways[0].http}/keycast/values-only.js`)
  expect((loaded as string[]).filter(name => name.includes('/rooms/'))).toEqual([])
  await page.getByLabel('Keys to watch').fill('doc:list')
  await page.keyboard.press('Enter')

  const list = card('doc:list')
  await list.getByText('"one"').waitFor()
  await list.getByText('94 more between').waitFor()
  expect(new URL(page.url()).hash).toBe('#doc:list')

  backend.on(
    '/list',
    answers.json(JSON.stringify({ title: 'two', items: [...items.slice(1), { id: 100, text: 'new' }] })),
  )
  await list.getByText('1 change', { exact: true }).waitFor()
  expect(await list.locator('.tree .changed').allTextContents()).toEqual([
    expect.stringContaining('"two"'),
    expect.stringContaining('"new"'),
  ])
  expect(await list.getByLabel('Last change').getByRole('listitem').allTextContents()).toEqual([
    'title"one" → "two"',
    'items[99]{ id: 100, text: "new" }',
    'items[0]{ id: 0, text: "item 0" }',
  ])
  expect(complaints).toEqual([])
})

test('a changed message in a conversation of 130 KB costs under 500 bytes, and the figures are right', async () => {
  const messages = Array.from({ length: 900 }, (_, id) => ({
    id,
    text: `message ${id}: ${'so it was said. '.repeat(8)}`,
  }))
  const publish = () => backend.on('/long', answers.json(JSON.stringify({ messages })))
  publish()
  const { page, card, complaints } = await open('')
  /** Bytes of what tells of the value: that it is stale, and no longer, may be told meanwhile. */
  const received: number[] = []
  page.on('websocket', socket => {
    socket.on('framereceived', ({ payload }) => {
      const { type } = JSON.parse(payload.toString().split('\n')[0])
      if (['value', 'delta'].includes(type)) received.push(Buffer.byteLength(payload))
    })
  })
  await page.goto(`${system.gateways[0].http}/#doc:long`)
  await page.reload()
  const long = card('doc:long')
  const kilobytes = JSON.stringify({ messages }).length / 1_000
  const sizeText = `${kilobytes.toLocaleString('en', { maximumFractionDigits: 1 })} KB`
  await long.getByText(sizeText, { exact: true }).waitFor()
  expect(Math.max(...received)).toBeGreaterThan(130_000)

  received.length = 0
  messages[450].text = messages[450].text.replace('so it was said', 'so it was sung')
  publish()
  await long.getByText('1 change', { exact: true }).waitFor()
  expect(received.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(500)
  await long.getByText(sizeText, { exact: true }).waitFor()
  expect(await long.getByLabel('Last change').getByRole('listitem').allTextContents()).toEqual([
    expect.stringContaining('messages[450].text'),
  ])
  expect(complaints).toEqual([])
})

test('text and bytes are shown as what they are', async () => {
  backend.on('/text', answers.content('first line\nsecond line', 'text/plain'))
  backend.on('/bytes', answers.content(Buffer.from([0, 1, 2, 0xff, 65]), 'application/octet-stream'))
  const { card, complaints } = await open('#doc:text,doc:bytes')
  await card('doc:text').getByText('second line').waitFor()
  await card('doc:bytes').getByText('00 01 02 ff 41').waitFor()

  backend.on('/text', answers.content('first line\nsecond word', 'text/plain'))
  await card('doc:text').locator('mark').waitFor()
  expect(await card('doc:text').locator('mark').textContent()).toBe('word')
  expect(complaints).toEqual([])
})

test('markup in a value is text, whatever it says', async () => {
  const evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
  backend.on('/evil', answers.json(JSON.stringify({ [evil]: evil })))
  const { page, card, complaints } = await open('#doc:evil')
  await card('doc:evil').getByText('onerror').first().waitFor()
  expect(await page.locator('.card img:visible, .card script').count()).toBe(0)
  expect(await page.title()).toBe('1 key · Keycast')
  expect(complaints).toEqual([])
})

test('a value that cannot be confirmed is called stale, and heals by itself; a wrong key says so', async () => {
  backend.on('/ill', answers.json('{"well":1}'))
  const { card } = await open('#doc:ill,nowhere:1')
  await card('doc:ill').getByText('well').first().waitFor()
  await card('nowhere:1').getByText('unknown_namespace').waitFor()

  backend.on('/ill', answers.status(500))
  await card('doc:ill').getByText('Not confirmed for').waitFor()
  backend.on('/ill', answers.json('{"well":2}'))
  await card('doc:ill').getByText('1 change', { exact: true }).waitFor()
  await card('doc:ill').getByText('Not confirmed for').waitFor({ state: 'hidden' })
})

test('another address shows other keys, and keeps naming them', async () => {
  backend.on('/x', answers.json('1'))
  backend.on('/y', answers.json('2'))
  const { page, card } = await open('#doc:x')
  await card('doc:x').waitFor()
  await page.evaluate("location.hash = '#doc:y'")
  await card('doc:y').waitFor()
  expect(await card('doc:x').count()).toBe(0)
  expect(new URL(page.url()).hash).toBe('#doc:y')
})

test('a key is given up by keyboard, and the focus goes on', async () => {
  backend.on('/a', answers.json('1'))
  backend.on('/b', answers.json('2'))
  const { page, card } = await open('#doc:a,doc:b')
  await card('doc:b').waitFor()
  await page.getByRole('button', { name: 'Stop watching doc:a' }).focus()
  await page.keyboard.press('Enter')
  expect(await card('doc:a').count()).toBe(0)
  expect(new URL(page.url()).hash).toBe('#doc:b')
  expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Stop watching doc:b')
})

test('when the gateway is gone the page says so and tries again', async () => {
  backend.on('/last', answers.json('"kept"'))
  const { page, card } = await open('#doc:last')
  await card('doc:last').getByText('"kept"').waitFor()
  await system.gateways[0].process.kill()
  await page.getByText('Reconnecting').waitFor()
  await page.getByRole('button', { name: 'Connect now' }).waitFor()
  expect(await card('doc:last').getByText('"kept"').isVisible()).toBe(true)
})
