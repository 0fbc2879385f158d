// The client in real browsers, behind the real proxy: networks, gateways and proxies fail, tabs are hidden, frozen and
// left, laptops sleep. Each page counts what it was shown of values and of rooms: nothing missing, twice or backwards.
import { randomBytes } from 'node:crypto'
import { connect, type Keycast } from '@keycast/client'
import { SignJWT } from 'jose'
import WebSocket from 'ws'
import { type Browser, startChromium, startFirefox, type Tab } from '../support/browsers.ts'
import { atEnd } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import type { NamespaceSettings } from '../support/keycast-yaml.ts'
import { type RunningProxy, startProxy } from '../support/proxy.ts'
import { startPages } from '../support/sites.ts'
import { type Gateway, type System, startSystem } from '../support/system.ts'
import { startSwitch } from '../support/tcp-switch.ts'

const JWT_SECRET = randomBytes(48).toString('base64')
const TOKEN_SECONDS = 3_600

/** Below what a gateway lets a session subscribe to. */
const VALUES = 4_900
const ROOMS = 100

/** The time for so many keys on a busy machine. */
const MANY_MS = 90_000

/** The number of keys that change while nobody is connected. */
const CHANGED = 50

/** Of gateways: one that is started later is to be where the proxy looks for it. */
const env: Record<string, string> = { JWT_SECRET, GATEWAY_HEARTBEAT_MS: '2000' }
let site: Awaited<ReturnType<typeof startSite>>
let system: System
/** The gateway behind the proxy. Another one, which is never killed, takes the publishes. */
let gateway: Gateway
let proxy: RunningProxy
/** Between the browsers and the proxy. */
let network: Awaited<ReturnType<typeof startSwitch>>
let publisher: Keycast

beforeAll(async () => {
  site = await startSite()
  const namespaces: Record<string, NamespaceSettings> = {
    room: { source: 'journal' },
    doc: { url: `${site.origin}/values/{id}`, refresh: '100ms' },
    many: { url: `${site.origin}/values/{id}`, refresh: '1h' },
  }
  const access = { tokens: [{ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] }] }
  system = await startSystem({ namespaces, access, journals: 1, env })
  const steady = system.gateways[0]
  gateway = await system.startGateway()
  env.GATEWAY_PORT = new URL(gateway.http).port
  proxy = await startProxy([Number(env.GATEWAY_PORT)])
  network = await startSwitch(proxy.httpsPort)
  publisher = connect(steady.url, { WebSocket: WebSocket as any, token: () => sign(TOKEN_SECONDS) })
  atEnd(() => publisher.close())
})

/** @param seconds for which the token is good */
const sign = (seconds: number) =>
  new SignJWT({ keys: { read: ['*:**'], publish: ['*:**'] } })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('ann')
    .setIssuedAt()
    .setExpirationTime(Math.floor(Date.now() / 1_000) + seconds)
    .sign(Buffer.from(JWT_SECRET))

/** The addresses of the pages and their scripts, of their tokens, and of the values. */
async function startSite() {
  const site = {
    origin: '',
    /** By id of a value. */
    revisions: new Map() as Map<string, number>,
    tokenSeconds: TOKEN_SECONDS,
    tokensGiven: 0,
  }
  const valueFor = (id: string) =>
    JSON.stringify({ revision: site.revisions.get(id) ?? 0, filler: 'as it was. '.repeat(20) })
  const token = () => {
    site.tokensGiven += 1
    return sign(site.tokenSeconds)
  }
  site.origin = await startPages(valueFor, { '/token': token })
  return site
}

/** Something new in a value and in a room, once for each. */
async function happen({ id, said }: { id: string; said: string[] }, count: number) {
  const room = publisher.room(`room:${id}`, { follow: false })
  for (let n = 0; n < count; n += 1) {
    site.revisions.set(id, (site.revisions.get(id) ?? 0) + 1)
    const text = `message ${said.length}`
    said.push(text)
    await room.publish(text)
  }
}

describe.each([
  ['Chromium', () => startChromium({ hidesTabs: true })],
  ['Firefox', startFirefox],
])('in %s', (name, start) => {
  let browser: Browser
  let lastPage = 0

  const tabs: Tab[] = []

  beforeAll(async () => {
    browser = await start()
  })

  afterEach(async () => {
    for (const tab of tabs.splice(0)) await tab.close()
  })

  async function openTab(url: string) {
    const tab = await browser.open(url)
    tabs.push(tab)
    return tab
  }

  /** A page that follows a value and a room that are its own. */
  async function open() {
    lastPage += 1
    const id = `${name}-${lastPage}`
    const what = { id, said: [] as string[] }
    const query = `gateway=wss://127.0.0.1:${network.port}/ws&value=doc:${id}&room=room:${id}`
    const tab = await openTab(`${site.origin}/?${query}`)
    await tab.until('window.isReady?.()', 'the page being ready')
    await happen(what, 3)
    return {
      tab,
      happen: (count: number) => happen(what, count),
      is: (state: string) => tab.until(`keycast.state.name === '${state}'`, `the connection being ${state}`),
      /** The page says something itself. */
      async say(text: string) {
        what.said.push(text)
        await tab.evaluate(`void rooms[0].publish('${text}')`)
      },
      /** All that happened was seen, once, in its order. */
      async judge() {
        await happen(what, 2)
        const revision = site.revisions.get(id)
        await tab.until(`seen.revisions['doc:${id}'] === ${revision}`, `revision ${revision}`)
        await tab.until(`seen.messages['room:${id}'].length >= ${what.said.length}`, 'all messages')
        await tab.until('rooms[0].pending.length === 0', 'the outcome of what the page said')
        const { problems, messages, restored } = await tab.evaluate('seen')
        expect(problems).toEqual([])
        const { messages: kept } = await publisher.room(`room:${id}`, { follow: false }).history({ limit: 500 })
        expect(messages[`room:${id}`]).toEqual(kept.map(({ data }) => data))
        expect([...messages[`room:${id}`]].sort()).toEqual([...what.said].sort())
        return { restored }
      },
    }
  }

  test('the network is gone, and is back', async () => {
    const { tab, happen, is, say, judge } = await open()
    network.silence()
    await tab.setOffline(true)
    await is('offline')
    await happen(5)
    await say('said without a network')
    network.mend()
    await tab.setOffline(false)
    await is('open')
    await judge()
  })

  test('a tab is hidden: it follows all, and one whose connection is lost waits until it is seen', async () => {
    const { tab, happen, is, say, judge } = await open()
    const other = await openTab(`${site.origin}/other`)
    await tab.until(`document.visibilityState === 'hidden'`, 'the tab being hidden')
    await happen(5)
    network.cut()
    await is('waiting')
    await happen(5)
    await say('said in a hidden tab')
    await other.show()
    expect(await tab.evaluate('keycast.state.name')).toBe('waiting')
    await tab.show()
    await judge()
  })

  // Firefox freezes no tab.
  if (name === 'Chromium') {
    test('a tab is frozen, and thawed', async () => {
      const { tab, happen, judge } = await open()
      await openTab(`${site.origin}/other`)
      await tab.until(`document.visibilityState === 'hidden'`, 'the tab being hidden')
      await browser.freeze?.(tab, true)
      await happen(5)
      await browser.freeze?.(tab, false)
      await happen(5)
      await tab.show()
      await judge()
    })
  }

  test('a laptop sleeps until its gateway has given it up', async () => {
    const { happen, is, judge } = await open()
    await happen(3)
    const sessions = (count: number) =>
      eventually(async () => (await gateway.metric('keycast_gateway_sessions')) === count, `${count} sessions`)
    // Those of the tabs before have ended, and this one's was not just lost.
    await sessions(1)
    browser.sleep()
    network.silence()
    await sessions(0)
    await happen(5)
    network.mend()
    browser.wake()
    await is('open')
    await judge()
  })

  test('the gateway is killed, and the proxy is restarted', async () => {
    const { happen, is, say, judge } = await open()
    const under = happen(20)
    await gateway.process.kill()
    await is('waiting')
    await say('said without a gateway')
    gateway = await system.startGateway()
    await under
    await is('open')

    const more = happen(20)
    await proxy.stop()
    await is('waiting')
    await say('said without a proxy')
    proxy = await startProxy([Number(env.GATEWAY_PORT)], { after: proxy })
    await more
    await is('open')
    await judge()
  })

  test('a token expires while the tab is hidden', async () => {
    site.tokenSeconds = 3
    const { tab, happen, judge } = await open()
    await openTab(`${site.origin}/other`)
    await tab.until(`document.visibilityState === 'hidden'`, 'the tab being hidden')
    const given = site.tokensGiven
    await eventually(() => site.tokensGiven > given, 'another token')
    site.tokenSeconds = TOKEN_SECONDS
    await happen(5)
    await tab.show()
    await judge()
  })

  test('a page is left and come back to', async () => {
    const { tab, happen, is, judge } = await open()
    await is('open')
    await tab.goto(`${site.origin}/other`)
    await tab.until(`location.pathname === '/other'`, 'the other page')
    await happen(5)
    await tab.back()
    await tab.until('window.isReady?.()', 'the page being back')
    const { restored } = await judge()
    expect(restored).toBe(browser.keepsConnected ? 1 : 0)

    // Every browser keeps a page without a connection. Firefox keeps none that is about to have one, as one that is hidden
    // is not.
    await openTab(`${site.origin}/other`)
    await tab.until(`document.visibilityState === 'hidden'`, 'the tab being hidden')
    await gateway.process.kill()
    await is('waiting')
    await tab.goto(`${site.origin}/other`)
    await tab.until(`location.pathname === '/other'`, 'the other page')
    await happen(5)
    await tab.back()
    await tab.until('window.seen', 'the page being back')
    gateway = await system.startGateway()
    await tab.show()
    await is('open')
    expect(await judge()).toEqual({ restored: restored + 1 })
  })

  test(
    `${VALUES + ROOMS} keys are subscribed to, and resumed at another gateway`,
    async () => {
      const query = `gateway=wss://127.0.0.1:${network.port}/ws&value=many:0..${VALUES - 1}&room=room:0..${ROOMS - 1}`
      const tab = await openTab(`${site.origin}/?${query}`)
      await tab.until('window.isReady?.()', 'every key', MANY_MS)
      const startedAt = await tab.evaluate('performance.now()')
      await gateway.process.kill()
      await tab.until(`keycast.state.name === 'waiting'`, 'the loss')
      const changed = Array.from({ length: CHANGED }, (_, n) => String(n * 7))
      for (const id of changed) site.revisions.set(id, (site.revisions.get(id) ?? 0) + 1)
      const { status } = await system.gateways[0].call('/v1/refresh', { keys: changed.map(id => `many:${id}`) })
      expect(status).toBe(202)
      for (let n = 0; n < ROOMS; n += 1) await publisher.room(`room:${n}`, { follow: false }).publish(name)
      gateway = await system.startGateway()
      await tab.until('isReady()', 'every key being live again', MANY_MS)
      for (const id of changed) {
        await tab.until(`seen.revisions['many:${id}'] === ${site.revisions.get(id)}`, `the revision of ${id}`)
      }
      await tab.until(`Object.keys(seen.messages).length === ${ROOMS}`, 'a message in each room')
      const { problems, messages } = await tab.evaluate('seen')
      expect(problems).toEqual([])
      expect(new Set(Object.values(messages).map(String))).toEqual(new Set([name]))
      const ms = Math.round((await tab.evaluate('performance.now()')) - startedAt)
      show(`${name}: ${VALUES + ROOMS} keys, ${ms} ms from the kill of the gateway to the last of them`)
    },
    3 * MANY_MS,
  )
})
