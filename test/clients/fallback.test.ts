// The client in real browsers where the proxy refuses WebSockets, and where it holds event streams back as well: the same
// handles show everything, nothing missing and nothing twice, also across a killed gateway.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startChromium, startFirefox } from '../support/browsers.ts'
import { eventually } from '../support/deadline.ts'
import { openSocket, type RunningProxy, request, startProxy } from '../support/proxy.ts'
import { startPages } from '../support/sites.ts'
import { startSystem } from '../support/system.ts'

const revisions = new Map<string, number>()
const site = await startPages(id => JSON.stringify({ revision: revisions.get(id) ?? 0, number: 1 }, undefined, 2))
const doc = { url: `${site}/values/{id}`, refresh: '100ms' }
const access = { anonymous: { read: ['*:**'], publish: ['*:**'], join: ['*:**'] } }
/** The first takes what others publish, and is not behind the proxies. */
const { gateways, startGateway } = await startSystem({
  namespaces: { room: { source: 'journal', members: 'named' }, doc },
  access,
  gateways: 3,
  journals: 1,
  env: { GATEWAY_DRAIN_MS: '0' },
})
const [aside, ...behind] = gateways
const portOf = ({ http }: { http: string }) => Number(new URL(http).port)

/** nginx with the project's template, but for these places. */
async function startProxyWith(changes: Record<string, string>): Promise<RunningProxy> {
  const proxy = await startProxy(behind.map(portOf))
  await changeProxy(proxy, Object.entries(changes))
  await expect(openSocket(proxy)).rejects.toThrow('403')
  return proxy
}

async function changeProxy(proxy: RunningProxy, changes: [line: string, changed: string][]) {
  const path = join(proxy.directory, 'nginx.conf')
  let text = readFileSync(path, 'utf8')
  for (const [line, changed] of changes) {
    expect(text).toContain(line)
    text = text.replace(line, changed)
  }
  writeFileSync(path, text)
  const before = proxy.workers()
  process.kill(proxy.masterPid, 'SIGHUP')
  // They take connections beside the new ones until they hear of it.
  await eventually(() => !proxy.workers().some(pid => before.includes(pid)), 'the end of the workers of before')
}

const change = (id: string) => revisions.set(id, (revisions.get(id) ?? 0) + 1)

describe.each([
  ['Chromium', startChromium],
  ['Firefox', startFirefox],
])('in %s', (name, start) => {
  const browser = start()

  test('without WebSockets: values, rooms, members and what the page says, across a killed gateway', async () => {
    const proxy = await startProxyWith({ 'location = /ws {': 'location = /ws { return 403;' })
    const id = `${name}-1`
    const query = `gateway=wss://127.0.0.1:${proxy.httpsPort}/ws&fallback&anonymous&value=doc:${id}&room=room:${id}`
    const tab = await (await browser).open(`${site}/?${query}`)
    await tab.until('window.isReady?.()', 'the page being ready')
    const streams = () => Promise.all(behind.map(gateway => gateway.metric('keycast_gateway_streams').catch(() => 0)))
    await eventually(async () => (await streams()).reduce((sum, count) => sum + count, 0) === 1, 'one stream')

    const said: string[] = []
    const publish = async (count: number) => {
      for (let n = 0; n < count; n++) {
        change(id)
        const data = `message ${said.length}`
        said.push(data)
        expect((await aside.call('/v1/publish', { key: `room:${id}`, data })).status).toBe(200)
      }
    }
    const say = async (text: string) => {
      said.push(text)
      await tab.evaluate(`void rooms[0].publish('${text}')`)
    }
    await publish(5)
    await tab.evaluate(`rooms[0].join('Ann').then(() => 'in')`)
    await say('said over a stream')

    const holder = (await streams()).indexOf(1)
    const port = portOf(behind[holder])
    const under = publish(20)
    await behind[holder].process.kill()
    await say('said without a gateway')
    await under
    await tab.until(`keycast.state.name === 'open'`, 'the connection being open again')
    behind[holder] = await startGateway({ GATEWAY_PORT: String(port) })
    await publish(3)

    await tab.until(`seen.revisions['doc:${id}'] === ${revisions.get(id)}`, 'the last revision')
    await tab.until(`seen.messages['room:${id}'].length >= ${said.length}`, 'all messages')
    await tab.until('rooms[0].pending.length === 0', 'the outcome of what the page said')
    const { problems, messages } = await tab.evaluate('seen')
    expect(problems).toEqual([])
    expect([...messages[`room:${id}`]].sort()).toEqual([...said].sort())
    const ofOthers = (all: string[]) => all.filter(text => text.startsWith('message'))
    expect(ofOthers(messages[`room:${id}`])).toEqual(ofOthers(said))
    expect(await tab.evaluate('rooms[0].state.joinedAs')).toBe('Ann')
    await tab.close()
    await proxy.stop()
  })

  test('without WebSockets the page and the chat work, across a killed gateway', async () => {
    const proxy = await startProxyWith({ 'location = /ws {': 'location = /ws { return 403;' })
    const id = `${name}-4`
    change(id)
    const page = await (await browser).open(proxy.url(`/#doc:${id}`))
    const shows = (revision: number) =>
      page.until(`/revision\\D*${revision}\\b/.test(document.body.innerText)`, `the page showing ${revision}`)
    await shows(1)
    // Not once the chat hides it: a page that is hidden does not come back after a loss. The chat's room needs one.
    const streams = () => Promise.all(behind.map(gateway => gateway.metric('keycast_gateway_streams').catch(() => 0)))
    await eventually(async () => (await streams()).reduce((sum, count) => sum + count, 0) === 1, 'one stream')
    const chat = await (await browser).open(proxy.url(`/chat#${id}`))
    const element = (name: string) => `document.getElementById('${name}')`
    await chat.until(`${element('join')}.hidden === false`, 'being asked for a name')
    await chat.evaluate(`void (${element('name')}.value = 'Ann')`)
    await chat.evaluate(`${element('join')}.requestSubmit()`)
    await chat.until(`${element('compose')}.hidden === false`, 'being in the room')

    const said: string[] = []
    const tell = async (text: string) => {
      said.push(text)
      const data = { name: 'Bob', text }
      expect((await aside.call('/v1/publish', { key: `room:${id}`, data })).status).toBe(200)
    }
    const write = async (text: string) => {
      said.push(text)
      await chat.evaluate(`void (${element('text')}.value = '${text}')`)
      await chat.evaluate(`${element('compose')}.requestSubmit()`)
    }
    await tell('before')
    await write('mine before')
    for (const gateway of behind.splice(0)) {
      const port = portOf(gateway)
      await gateway.process.kill()
      await tell('without a gateway')
      behind.push(await startGateway({ GATEWAY_PORT: String(port) }))
    }
    change(id)
    await write('mine after')
    const texts = `[...document.querySelectorAll('#messages .text')].map(each => each.textContent)`
    await chat.until(`${texts}.length >= ${said.length}`, 'all messages')
    await chat.until(`!document.querySelector('#messages .pending, #messages .failed')`, 'all being sent')
    expect((await chat.evaluate(texts)).sort()).toEqual([...said].sort())
    // A hidden tab draws nothing.
    await page.show()
    await shows(2)
    for (const tab of [page, chat]) await tab.close()
    await proxy.stop()
  })

  test('the chat: who asks for a name where there are no rooms yet is in the room once there are', async () => {
    const [open, shut] = ['location = /v1/stream {', 'location = /v1/stream { return 403;']
    const proxy = await startProxyWith({ 'location = /ws {': 'location = /ws { return 403;', [open]: shut })
    const chat = await (await browser).open(proxy.url(`/chat#${name}-5`))
    const element = (name: string) => `document.getElementById('${name}')`
    await chat.until(`${element('join')}.hidden === false`, 'being asked for a name')
    await chat.evaluate(`void (${element('name')}.value = 'Ann')`)
    await chat.evaluate(`${element('join')}.requestSubmit()`)
    await chat.until(`${element('name-problem')}.textContent !== ''`, 'being told that there are no rooms')
    await changeProxy(proxy, [[shut, open]])
    await chat.until(`${element('compose')}.hidden === false`, 'being in the room')
    await chat.close()
    await proxy.stop()
  })

  test('EventSource alone: a room across a killed gateway', async () => {
    const proxy = await startProxy(behind.map(portOf))
    const key = `room:${name}-3`
    const tab = await (await browser).open(`${site}/empty`)
    await tab.evaluate(`void (() => {
      window.got = []
      window.opened = 0
      window.events = new EventSource('${proxy.url(`/v1/stream?keys=${key}`)}')
      events.onmessage = ({ data }) => {
        const message = JSON.parse(data)
        if (message.type === 'subscribed') opened += 1
        if (message.type === 'message') got.push(message.data)
      }
    })()`)
    await tab.until('opened === 1', 'the room')
    const sent: number[] = []
    const publish = async (count: number) => {
      for (let n = 0; n < count; n++) {
        expect((await aside.call('/v1/publish', { key, data: sent.length })).status).toBe(200)
        sent.push(sent.length)
      }
    }
    await publish(10)
    await tab.until('got.length > 0', 'a message')
    const counts = () => Promise.all(behind.map(gateway => gateway.metric('keycast_gateway_streams')))
    await eventually(async () => ['0,1', '1,0'].includes((await counts()).join()), 'one stream')
    const holder = (await counts()).indexOf(1)
    const port = portOf(behind[holder])
    const under = publish(20)
    await behind[holder].process.kill()
    await under
    await publish(10)
    await tab.until(`got.length >= ${sent.length}`, 'all messages')
    expect(await tab.evaluate('got')).toEqual(sent)
    expect(await tab.evaluate('opened')).toBe(2)
    expect(await tab.evaluate('events.readyState')).toBe(1)
    behind[holder] = await startGateway({ GATEWAY_PORT: String(port) })
    await tab.close()
    await proxy.stop()
  })

  test('without WebSockets and with streams held back: values, by requests that wait', async () => {
    const proxy = await startProxyWith({
      'location = /ws {': 'location = /ws { return 403;',
      // The end of it would come with the end of the stream.
      'proxy_buffering off;': 'proxy_ignore_headers X-Accel-Buffering; proxy_buffering on;',
    })
    const id = `${name}-2`
    const query = `gateway=wss://127.0.0.1:${proxy.httpsPort}/ws&fallback&anonymous&value=doc:${id}`
    const tab = await (await browser).open(`${site}/?${query}`)
    await tab.until('window.isReady?.()', 'the page being ready')
    for (let n = 0; n < 3; n++) {
      change(id)
      await tab.until(`seen.revisions['doc:${id}'] === ${revisions.get(id)}`, `revision ${revisions.get(id)}`)
    }
    const { problems } = await tab.evaluate('seen')
    expect(problems).toEqual([])
    await tab.close()
    expect((await request(proxy.url('/keycast.js'))).status).toBe(200)
    await proxy.stop()
  })
})
