// Event streams through nginx, over HTTP/2, to three gateways: what is said and what is asked for find the same gateway,
// and a room goes on after a gateway's death with nothing missed and nothing twice.
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { connect as connectClient } from '@keycast/client'
import { SignJWT } from 'jose'
import { createFallback } from '../../packages/client/keycast/fallback/fallback.js'
import { atEnd } from '../support/cleanup.ts'
import { eventually, within } from '../support/deadline.ts'
import { freePorts } from '../support/free-ports.ts'
import { startProxy } from '../support/proxy.ts'
import { startRooms } from '../support/system.ts'
import { startSwitch } from '../support/tcp-switch.ts'

const secret = randomBytes(48).toString('base64')
const { gateways, startGateway } = await startRooms({
  gateways: 3,
  access: {
    anonymous: { read: ['room:*'], publish: ['room:*'] },
    everyone: { read: ['room:*'] },
    tokens: [{ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] }],
  },
  env: { JWT_SECRET: secret },
})
const portOf = ({ http }: { http: string }) => Number(http.slice(http.lastIndexOf(':') + 1))
const proxy = await startProxy(gateways.map(portOf))

/** One connection of a browser to nginx, for all its requests. */
function openHttp2(to = proxy): ClientHttp2Session {
  const session = connect(to.url(''), { rejectUnauthorized: false })
  session.on('error', () => {})
  atEnd(() => session.destroy())
  return session
}
const browser = openHttp2()

function ask(path: string, headers: Record<string, string> = {}, body?: string, from = browser) {
  return within(
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const method = body === undefined ? 'GET' : 'POST'
      const request = from.request({ ':path': path, ':method': method, ...headers }, { endStream: body === undefined })
      let status = 0
      let text = ''
      request.on('response', head => {
        status = Number(head[':status'])
      })
      request.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      request.on('end', () => resolve({ status, text })).on('error', reject)
      if (body !== undefined) request.end(body)
    }),
    `an answer of ${path}`,
  )
}

/** As EventSource does it: comes back by itself, with the last id. */
function follow(query: string, from: ClientHttp2Session = browser) {
  const messages: any[] = []
  let lastId = ''
  let opened = 0
  let name = ''
  let isClosed = false
  const open = () => {
    if (isClosed) return
    const request = from.request({ ':path': `/v1/stream${query}`, ...(lastId && { 'last-event-id': lastId }) })
    let text = ''
    request.on('response', headers => {
      if (headers[':status'] !== 200) return
      opened++
      name = String(headers['keycast-stream'])
    })
    request.setEncoding('utf8').on('data', chunk => {
      text += chunk
      const blocks = text.split('\n\n')
      text = blocks.pop() as string
      for (const block of blocks) take(block)
    })
    request.on('error', () => {}).on('close', () => setTimeout(open, 50))
  }
  const take = (block: string) => {
    for (const line of block.split('\n')) {
      if (line.startsWith('id: ')) lastId = line.slice(4)
      if (line.startsWith('data: ')) messages.push(JSON.parse(line.slice(6)))
    }
  }
  open()
  atEnd(() => {
    isClosed = true
  })
  const find = (fields: object) =>
    messages.find(message => Object.entries(fields).every(([field, value]) => message[field] === value))
  return {
    messages,
    opened: () => opened,
    name: () => name,
    until: (fields: object) => eventually(() => find(fields), `a message with ${JSON.stringify(fields)}`),
    published: () => messages.filter(({ type }) => type === 'message').map(({ data }) => data),
  }
}

test('each of many streams is spoken for at the gateway that holds it, whichever nginx asks first', async () => {
  const streams = Array.from({ length: 6 }, () => follow(''))
  await Promise.all(streams.map(stream => stream.until({ type: 'welcome' })))
  const counts = await Promise.all(gateways.map(gateway => gateway.metric('keycast_gateway_streams')))
  expect(counts).toEqual([2, 2, 2])
  for (const stream of streams) {
    for (const id of [1, 2, 3]) {
      const sent = await ask(
        '/v1/stream/send',
        { 'keycast-stream': stream.name() },
        JSON.stringify({ type: 'ping', id }),
      )
      expect(sent.status).toBe(204)
    }
    await stream.until({ type: 'pong', id: 3 })
  }
  expect((await ask('/v1/stream/send', { 'keycast-stream': randomUUID() }, '{}')).status).toBe(404)
})

test.each([
  ['whichever gateway the stream comes to first', () => proxy],
  [
    'its gateway, also where another one is gone',
    async () => startProxy([...gateways.map(portOf), ...(await freePorts(1))]),
  ],
])('a ticket is good once, at %s', async (_, start) => {
  const token = await new SignJWT({})
    .setSubject('ann')
    .setIssuedAt()
    .setExpirationTime('1h')
    .setProtectedHeader({ alg: 'HS256' })
    .sign(Buffer.from(secret))
  const to = await start()
  const page = openHttp2(to)
  for (let round = 0; round < 8; round++) {
    const given = await ask('/v1/ticket', { authorization: `Bearer ${token}` }, '', page)
    expect(given.status).toBe(200)
    const { ticket } = JSON.parse(given.text)
    const request = page.request({ ':path': `/v1/stream?keys=room:9&ticket=${ticket}` })
    const [head] = await once(request, 'response')
    expect(head[':status']).toBe(200)
    let said = ''
    request.setEncoding('utf8').on('data', text => {
      said += text
    })
    await eventually(() => said.includes('"user":"ann"'), 'a welcome')
    // 502: it may be one of the gateway that is gone.
    expect([404, 502]).toContain((await ask(`/v1/stream?ticket=${ticket}`, {}, undefined, page)).status)
  }
})

test('a client of the library that has vanished is given up after two heartbeats', async () => {
  const gateway = await startGateway({ GATEWAY_HEARTBEAT_MS: '1000' })
  const network = await startSwitch(portOf(gateway))
  let answers = 0
  const WebSocket = createFallback({
    WebSocket: null as any,
    fetch(address, init) {
      if (init?.body === '') answers++
      return fetch(address, init)
    },
  })
  const keycast = connectClient(`ws://127.0.0.1:${network.port}/ws`, { WebSocket })
  atEnd(() => keycast.close())
  await eventually(() => answers > 2, 'answers to comments')
  await eventually(async () => (await gateway.metric('keycast_gateway_streams')) === 1, 'the stream')
  network.silence()
  await eventually(async () => (await gateway.metric('keycast_gateway_streams')) === 0, 'the end of the stream')
})

test('messages that the library was given before it was closed arrive', async () => {
  const WebSocket = createFallback({ WebSocket: null as any })
  const keycast = connectClient(gateways[0].url, { WebSocket })
  await eventually(() => keycast.state.name === 'open', 'the connection being open')
  // Each room takes one message at a time; the first request has that of the first room alone.
  const keys = [1, 2, 3].map(id => `room:closed-${id}`)
  for (const key of keys)
    keycast
      .room(key, { follow: false })
      .publish(key)
      .catch(() => {})
  await new Promise(resolve => setImmediate(resolve))
  keycast.close()
  for (const key of keys) {
    await eventually(async () => (await ask(`/v1/messages/${key}`)).text.includes(`"data":"${key}"`), key)
  }
})

test('streams go on after the death of a gateway, with nothing missed and nothing twice', async () => {
  const [dying, other] = gateways
  const readers = Array.from({ length: 6 }, () => follow('?keys=room:1,room:2'))
  await Promise.all(
    readers.map(reader =>
      eventually(() => reader.messages.filter(({ type }) => type === 'subscribed').length >= 2, 'both rooms'),
    ),
  )
  const sent: string[] = []
  const publish = async (key: string) => {
    const data = `${key} ${sent.length}`
    const { status } = await other.call('/v1/publish', { key, data })
    expect(status).toBe(200)
    sent.push(data)
  }
  for (let n = 0; n < 20; n++) await publish(n % 2 === 0 ? 'room:1' : 'room:2')
  const last = () => ({ type: 'message', data: sent.at(-1) })
  await readers[0].until(last())
  const killed = dying.process.kill()
  for (let n = 0; n < 20; n++) await publish(n % 2 === 0 ? 'room:1' : 'room:2')
  await killed
  for (let n = 0; n < 20; n++) await publish(n % 2 === 0 ? 'room:1' : 'room:2')
  for (const key of ['room:1', 'room:2']) await publish(key)
  for (const reader of readers) {
    await eventually(() => reader.published().length >= sent.length, 'all messages')
    for (const key of ['room:1', 'room:2']) {
      const ofRoom = (all: string[]) => all.filter(data => data.startsWith(key))
      expect(ofRoom(reader.published())).toEqual(ofRoom(sent))
    }
    expect(reader.messages.filter(({ type }) => type === 'gap')).toEqual([])
  }
  expect(readers.some(reader => reader.opened() > 1)).toBe(true)
})
