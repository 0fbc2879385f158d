// Fifty tabs of a browser share one connection through a SharedWorker, and see what fifty connections would show them.
import { readFileSync } from 'node:fs'
import { connect } from '@keycast/client'
import { browserFiles } from '../../packages/client/browser-files.js'
import { type Browser, startChromium, startFirefox, type Tab } from '../support/browsers.ts'
import { atEnd } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { startSite } from '../support/sites.ts'
import { startRooms } from '../support/system.ts'
import { WebSocket } from '../support/websocket.ts'

const page = (url: string, key: string) => `<!doctype html><link rel="icon" href="data:,"><script type="module">
  import { connect } from '/keycast/shared/shared.js'
  window.keycast = connect('${url}')
  window.room = keycast.room('${key}')
  window.seen = []
  room.on('message', ({ data }) => seen.push(data))
  room.on('gap', ({ reason }) => seen.push(reason))
</script>`

/** Pages that follow a room of a gateway. */
function startTabs(url: string) {
  const scripts = browserFiles()
  return startSite(({ url: path = '' }, response) => {
    const script = scripts.get(path)
    response.setHeader('content-type', script ? 'text/javascript' : 'text/html')
    response.end(script ? readFileSync(script) : page(url, `room:${path.slice(1)}`))
  })
}

test.each([
  ['Chromium', 50, startChromium],
  ['Firefox', 50, startFirefox],
])('in %s %i tabs hold one connection, and each follows the room', async (name, count, start) => {
  const { gateways, startGateway } = await startRooms()
  const [first] = gateways
  const site = await startTabs(first.url)
  const browser: Browser = await start()
  const tabs: Tab[] = []
  for (let n = 0; n < count; n += 1) {
    const tab = await browser.open(`${site}/${name}`, { isBehind: true })
    tabs.push(tab)
    await tab.until(`window.room?.state.health === 'live'`, 'the room being live')
  }
  expect(await first.metric('keycast_gateway_sessions')).toBe(1)

  const said: string[] = []
  const say = async (at: number, text: string) => {
    said.push(text)
    await tabs[at].evaluate(`room.publish('${text}').then(() => true)`)
  }
  const judge = async () => {
    for (const tab of tabs) await tab.until(`seen.length >= ${said.length}`, 'all messages')
    for (const tab of tabs) expect(await tab.evaluate('seen')).toEqual(said)
  }
  for (let n = 0; n < 5; n += 1) await say(n, `message ${n}`)
  await judge()

  // Others do not notice tabs that end, the first among them.
  for (const tab of tabs.splice(0, 10)) await tab.close()
  await say(0, 'after ten have gone')
  await judge()
  expect(await first.metric('keycast_gateway_sessions')).toBe(1)

  await first.process.kill()
  // Each tab is told by the worker, in its own time.
  for (const tab of tabs)
    await tab.until(`room.state.health === 'offline' && keycast.state.name !== 'open'`, 'the loss')
  const next = await startGateway({ GATEWAY_PORT: new URL(first.http).port })
  for (const tab of tabs) await tab.until(`room.state.health === 'live'`, 'the room being live again')
  await say(2, 'after the gateway was killed')
  await judge()
  expect(await next.metric('keycast_gateway_sessions')).toBe(1)

  for (const tab of tabs.splice(0)) await tab.close()
  await eventually(async () => (await next.metric('keycast_gateway_sessions')) === 0, 'the end of the connection')
  const reader = connect(next.url, { WebSocket })
  atEnd(() => reader.close())
  const { messages } = await reader.room(`room:${name}`, { follow: false }).history()
  expect(messages.map(({ data }) => data)).toEqual(said)
})
