// The example of a chat in Chromium, as several people see it behind the proxy. The tests judge the text on their
// pages.
import type { Browser } from 'playwright-core'
import { startChromium } from '../support/browsers.ts'
import { launchChromium } from '../support/chromium.ts'
import { eventually } from '../support/deadline.ts'
import { killNow } from '../support/processes.ts'
import { type RunningProxy, startProxy } from '../support/proxy.ts'
import { startRooms } from '../support/system.ts'

/** Of gateways: one that is started later is to be where the proxy looks for it. */
const env: Record<string, string> = {}
let rooms: Awaited<ReturnType<typeof startRooms>>
let gateway: Awaited<ReturnType<typeof startRooms>>['gateways'][number]
let proxy: RunningProxy
let browser: Browser

beforeAll(async () => {
  rooms = await startRooms({
    namespaces: { room: { members: 'named', names: 'unique' } },
    access: { anonymous: { read: ['*:**'], publish: ['*:**'], join: ['*:**'] } },
    env,
  })
  gateway = rooms.gateways[0]
  env.GATEWAY_PORT = new URL(gateway.http).port
  proxy = await startProxy([Number(env.GATEWAY_PORT)])
  browser = await launchChromium()
})

// A page left open would go on drawing what changes, for as long as the file runs.
afterEach(() => Promise.all(browser.contexts().map(context => context.close())))

/** @param options of the browser */
async function open(room: string, options: object = {}) {
  const context = await browser.newContext({ ...options, ignoreHTTPSErrors: true })
  const page = await context.newPage()
  /** The browser's complaints, a breach of the Content-Security-Policy included. */
  const complaints: string[] = []
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => {
    const isOfConnection =
      message.text().includes('WebSocket connection') || /\/v1\/|\/keycast\.js$/.test(message.location().url)
    if (message.type() === 'error' && !isOfConnection) complaints.push(message.text())
  })
  await page.goto(proxy.url(`/chat#${room}`))
  return { page, complaints }
}

async function openAs(room: string, name: string, options?: object) {
  const { page, complaints } = await open(room, options)
  await page.getByLabel('Your name').fill(name)
  await page.getByRole('button', { name: 'Join' }).click()
  const field = page.getByRole('textbox', { name: 'Message' })
  await field.waitFor()
  return {
    name,
    page,
    complaints,
    async say(text: string) {
      await field.fill(text)
      await field.press('Enter')
    },
    /** The messages on the page, in order. */
    texts: () => page.locator('#messages .text').allTextContents(),
    /** The messages that are still being sent, or failed. */
    unsettled: () => page.locator('#messages .pending, #messages .failed').count(),
    banner: page.locator('#banner-text'),
    has: (count: number) => hasAll(() => page.locator('#messages .text').allTextContents(), count),
  }
}

/** A failure names what there is: messages may be missing, or there twice. */
function hasAll(texts: () => Promise<string[]>, count: number) {
  let there: string[] = []
  return eventually(
    async () => {
      there = await texts()
      return there.length === count
    },
    () => `${count} messages in place of ${there.length} (${there.join(', ')})`,
  )
}

/** Somebody whose tab can be put to sleep. */
async function openInTab(room: string, name: string) {
  const browser = await startChromium({ hidesTabs: true })
  const tab = await browser.open(proxy.url(`/chat#${room}`))
  const element = (id: string) => `document.getElementById('${id}')`
  await tab.until(`${element('join')}.hidden === false`, 'being asked for a name')
  await tab.evaluate(`void (${element('name')}.value = '${name}')`)
  await tab.evaluate(`${element('join')}.requestSubmit()`)
  await tab.until(`${element('compose')}.hidden === false`, 'being in the room')
  const texts = () => tab.evaluate(`[...document.querySelectorAll('#messages .text')].map(each => each.textContent)`)
  return {
    texts,
    has: (count: number) => hasAll(texts, count),
    async sleep() {
      await browser.open('about:blank')
      await tab.until(`document.visibilityState === 'hidden'`, 'the tab being hidden')
      await browser.freeze?.(tab, true)
    },
    async wake() {
      await browser.freeze?.(tab, false)
      await tab.show()
    },
  }
}

test('people talk: a name belongs to one, everybody sees who is there and what is said', async () => {
  const ann = await openAs('talk', 'Ann')
  const bob = await openAs('talk', 'Bob')
  const { page } = await open('talk')
  await page.getByLabel('Your name').fill('Ann')
  await page.getByRole('button', { name: 'Join' }).click()
  await page.getByRole('alert').getByText('Somebody here has that name').waitFor()

  await ann.say('Good morning')
  await bob.say('Good\nmorning, <b>Ann</b>')
  for (const { has, texts } of [ann, bob]) {
    await has(2)
    expect(await texts()).toEqual(['Good morning', 'Good\nmorning, <b>Ann</b>'])
  }
  // Without a token anybody may take a name: only what this page sent is styled as one's own, and no name as verified.
  await bob.page.evaluate(`import('/keycast.js').then(({ connect }) =>
    connect('/ws').room('room:talk').publish({ name: 'Ann', text: 'I am Ann' }))`)
  await ann.has(3)
  const ownTexts = () => ann.page.locator('#messages .mine .text').allTextContents()
  expect(await ownTexts()).toEqual(['Good morning'])
  expect(await ann.page.locator('#messages .who b').count()).toBe(0)
  expect(await ann.page.locator('#messages .who').last().textContent()).toMatch(/^Ann unverified /)

  const bothAreThere = async () => (await ann.page.locator('#people .name').allTextContents()).join() === 'Ann,Bob'
  await eventually(bothAreThere, 'both being there')
  // A user who opens the page again keeps the name, and is no second member.
  await ann.page.reload()
  await ann.page.getByRole('textbox', { name: 'Message' }).waitFor()
  await ann.has(3)
  expect(await ownTexts()).toEqual([])
  // She left with the page that was reloaded: the members come in a list, and her joining again soon after.
  await eventually(bothAreThere, 'both being there again')
  await bob.page.close()
  await eventually(
    async () => (await ann.page.locator('#people .name').allTextContents()).join() === 'Ann',
    'Bob being gone',
  )
  expect(ann.complaints).toEqual([])
})

test('gateway, journal and proxy are killed while people write and a tab sleeps: on no page is a message missing or twice', async () => {
  const people = await Promise.all(['Ann', 'Bob', 'Cid'].map(name => openAs('faults', name)))
  const [ann] = people
  const sleeper = await openInTab('faults', 'Dee')
  // After 30 s a message is given up: on a slow machine more of them, and then a start, would take longer.
  const WHILE_LOST = 2
  let written = 0
  async function writeSome(rounds = 4) {
    for (let n = 0; n < rounds; n += 1) {
      for (const person of people) await person.say(`${person.name} ${written}`)
      written += 1
    }
  }
  await writeSome()
  await sleeper.has(written * people.length)
  await sleeper.sleep()
  await gateway.process.kill()
  await ann.banner.getByText('The connection is lost').waitFor()
  await writeSome(WHILE_LOST)
  expect(await ann.unsettled()).toBeGreaterThan(0)
  gateway = await rooms.startGateway()
  for (const { banner } of people) await banner.waitFor({ state: 'hidden' })
  await writeSome()

  const { journal } = rooms
  journal.process().signal('SIGKILL')
  await journal.process().exited
  await writeSome(WHILE_LOST)
  await journal.restart()
  await writeSome()

  const nginx = [proxy.masterPid, ...proxy.workers()]
  await proxy.kill()
  nginx.forEach(killNow)
  await ann.banner.getByText('The connection is lost').waitFor()
  await writeSome(WHILE_LOST)
  proxy = await startProxy([Number(env.GATEWAY_PORT)], { after: proxy })
  for (const { banner } of people) await banner.waitFor({ state: 'hidden' })
  await writeSome()
  await sleeper.wake()

  const [first, ...others] = people
  const count = written * people.length
  for (const { unsettled } of people) await eventually(async () => (await unsettled()) === 0, 'all being sent')
  for (const { has } of people) await has(count)
  const texts = await first.texts()
  expect(new Set(texts).size).toBe(count)
  await sleeper.has(count)
  for (const other of [...others, sleeper]) expect(await other.texts()).toEqual(texts)
  for (const { name } of people) {
    const own = texts.filter(text => text.startsWith(name))
    expect(own).toEqual(Array.from({ length: written }, (_, n) => `${name} ${n}`))
  }
  for (const { complaints } of people) expect(complaints).toEqual([])
})

test('older messages come as the reader scrolls up, and new ones do not move what is being read', async () => {
  const ann = await openAs('long', 'Ann')
  await ann.page.evaluate(`import('/keycast.js').then(async ({ connect }) => {
    const room = connect('/ws').room('room:long', { follow: false })
    for (let n = 0; n < 120; n += 1) await room.publish({ name: 'Ann', text: 'line ' + n })
  })`)
  await ann.has(120)
  const bob = await openAs('long', 'Bob', { viewport: { width: 390, height: 700 } })
  await eventually(async () => (await bob.texts()).at(-1) === 'line 119', 'the newest message')
  expect((await bob.texts()).length).toBeLessThan(120)
  const feed = bob.page.locator('#feed')
  await eventually(async () => {
    await feed.evaluate(element => {
      element.scrollTop = 0
    })
    return (await bob.texts())[0] === 'line 0'
  }, 'the oldest message')
  expect(await bob.texts()).toEqual(Array.from({ length: 120 }, (_, n) => `line ${n}`))

  await feed.evaluate(element => {
    element.scrollTop = 300
  })
  await ann.say('line 120')
  await ann.say('line 121')
  await bob.page.getByRole('button', { name: '2 new below' }).click()
  await bob.page.getByText('line 121').waitFor()
  const isAtEnd = await feed.evaluate(({ scrollTop, clientHeight, scrollHeight }) => {
    return scrollHeight - scrollTop - clientHeight < 2
  })
  expect(isAtEnd).toBe(true)
})

test('a name turns nothing that stands beside it, and makes no page wider', async () => {
  const { page } = await openAs('names', 'Ann', { viewport: { width: 360, height: 640 } })
  const names = ['\u202eBob', 'W'.repeat(1_000)]
  await page.evaluate(`import('/keycast.js').then(async ({ connect }) => {
    const room = connect('/ws').room('room:names', { follow: false })
    for (const name of ${JSON.stringify(names)}) await room.publish({ name, text: 'a text' })
  })`)
  await page.getByText('a text').nth(1).waitFor()
  const [turned] = await page.locator('#messages li').all()
  const [name, mark] = await Promise.all(['i', '.unvouched'].map(each => turned.locator(each).boundingBox()))
  expect(mark?.x).toBeGreaterThan(name?.x as number)
  for (const part of ['html', '#feed']) {
    const { scrollWidth, clientWidth } = await page.locator(part).evaluate(element => ({
      scrollWidth: element.scrollWidth,
      clientWidth: element.clientWidth,
    }))
    expect([part, scrollWidth]).toEqual([part, clientWidth])
  }
})

test('it is used with the keyboard alone, and each part has a name', async () => {
  const { page } = await open('keys')
  await page.getByLabel('Your name').focus()
  await page.keyboard.type('Ann')
  await page.keyboard.press('Enter')
  await page.getByRole('textbox', { name: 'Message' }).waitFor()
  await page.keyboard.type('by hand')
  await page.keyboard.press('Enter')
  await page.getByRole('log', { name: 'Messages' }).getByText('by hand').waitFor()
  for (const control of await page.locator('button:visible, input:visible, textarea:visible').all()) {
    const name = await control.evaluate(element => {
      const { labels } = element as any
      return element.getAttribute('aria-label') ?? labels?.[0]?.textContent ?? element.textContent
    })
    expect(name?.trim()).toBeTruthy()
  }
})
