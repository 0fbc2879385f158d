import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { createClient, type Ending } from './client.ts'
import { encodeFrame } from './frames.ts'

const endings: (() => void)[] = []
afterEach(() => {
  for (const end of endings.splice(0)) end()
})

const startServer = async () => {
  const http = createServer((_, response) => response.writeHead(404).end())
  const sockets = new WebSocketServer({ noServer: true })
  http.on('upgrade', (request, socket, head) => {
    if (request.url === '/ws')
      return sockets.handleUpgrade(request, socket, head, ws => sockets.emit('connection', ws, request))
    socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\n')
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  endings.push(() => {
    for (const socket of sockets.clients) socket.terminate()
    http.close()
  })
  const { port } = http.address() as AddressInfo
  return { sockets, url: new URL(`ws://127.0.0.1:${port}/ws`) }
}

const connect = (url: URL, options: { localAddress?: string; subprotocol?: string } = {}) => {
  const events = new EventEmitter()
  const messages: { head: string; bytes: number }[] = []
  const client = createClient({
    url,
    headBytesMax: 64,
    ...options,
    onOpen: () => events.emit('open'),
    onMessage(head, bytes) {
      messages.push({ head: head.trim(), bytes })
      events.emit('message')
    },
    onEnd: ending => events.emit('end', ending),
  })
  return {
    client,
    messages,
    opened: once(events, 'open'),
    ended: once(events, 'end').then(([ending]) => ending) as Promise<Ending>,
    async received(count: number) {
      while (messages.length < count) await once(events, 'message')
    },
  }
}

test('a client and ws understand each other, whatever the length', async () => {
  const { sockets, url } = await startServer()
  sockets.on('connection', ws => {
    ws.send('welcome')
    ws.on('message', data => ws.send(`${data} back`.padEnd(200_000)))
  })
  const { client, messages, opened, received, ended } = connect(url)
  await opened

  client.send(Buffer.concat([encodeFrame('one'), encodeFrame('two')]))
  await received(3)

  expect(messages).toEqual([
    { head: 'welcome', bytes: 7 },
    { head: 'one back', bytes: 200_000 },
    { head: 'two back', bytes: 200_000 },
  ])
  client.close()
  expect((await ended).how).toBe('closed')
})

test('a ping is answered, as a heartbeat demands', async () => {
  const { sockets, url } = await startServer()
  const ponged = new Promise(resolve => {
    sockets.on('connection', ws => {
      ws.on('pong', data => resolve(data.toString()))
      ws.ping('still there?')
    })
  })
  const { client } = connect(url)

  expect(await ponged).toBe('still there?')
  client.close()
})

test('a connection the server closes is dropped, and the reason said', async () => {
  const { sockets, url } = await startServer()
  sockets.on('connection', ws => ws.close(4008, 'too slow'))

  expect(await connect(url).ended).toEqual({ how: 'dropped', reason: 'closed by the server: 4008 too slow' })
})

test('a connection that vanishes is dropped', async () => {
  const { sockets, url } = await startServer()
  sockets.on('connection', ws => ws.terminate())

  expect((await connect(url).ended).how).toBe('dropped')
})

test('a handshake that is refused is told from a connection that was dropped', async () => {
  const { url } = await startServer()
  const elsewhere = new URL('/elsewhere', url)

  expect(await connect(elsewhere).ended).toEqual({
    how: 'refused',
    reason: 'the handshake was answered with 503 Service Unavailable',
  })
})

test('a port where nobody listens refuses', async () => {
  expect(await connect(new URL('ws://127.0.0.1:1/ws')).ended).toMatchObject({ how: 'refused' })
})

test('a client comes from the address it was given', async () => {
  const { sockets, url } = await startServer()
  const address = new Promise(resolve => {
    sockets.on('connection', (_, request) => resolve(request.socket.remoteAddress))
  })
  const { client } = connect(url, { localAddress: '127.0.0.7' })

  expect(await address).toBe('127.0.0.7')
  client.close()
})
