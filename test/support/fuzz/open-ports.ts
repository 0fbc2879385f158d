// Absurd bytes to the ports of a running gateway, for as long as `isOn` says: sessions, frames, tokens, HTTP.
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { type BYTES_SUBPROTOCOL, JSON_SUBPROTOCOL } from '@keycast/protocol'
import fc from 'fast-check'
import WebSocket from 'ws'
import { pause } from '../deadline.ts'
import { type Absurd, absurdJson, absurdText, type Named } from './absurd.ts'
import { absurdHttp, type HttpMessage, written } from './absurd-http.ts'
import { absurdTokens } from './doors-access.ts'
import { frames } from './frames.ts'
import { seed } from './length.ts'
import { requests } from './messages.ts'

/** @param body JSON, in which each part may be absurd */
const request = (first: string, fields: Record<string, string> = {}, body?: unknown): Named<HttpMessage> => [
  first,
  {
    first: `${first} HTTP/1.1`,
    fields: [['host', 'h'], ...Object.entries(fields)],
    body: Buffer.from(body === undefined ? '' : JSON.stringify(body)),
  },
]

const upgrade = {
  upgrade: 'websocket',
  connection: 'upgrade',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
}
/** A ping in a masked frame, behind the request. */
const FRAME = Buffer.from([0x81, 0x85, 1, 2, 3, 4, 0x7a, 0x20, 0x71, 0x60, 0x7b])
const [upgradeName, upgradeRequest] = request('GET /ws', upgrade)

const ofClients: Named<HttpMessage>[] = [
  [upgradeName, { ...upgradeRequest, body: FRAME }],
  request('GET /v1/values/well:1', { 'if-none-match': '"a"', 'accept-encoding': 'br, gzip;q=0.5' }),
  request('GET /v1/wait/well:1?after=5rTzvqDXwAkZcRTXhVBNwA&cursor=1795333665478.89'),
  request('GET /v1/messages/room:1?epoch=q3kV7bTn&before=118&limit=20'),
  request('GET /v1/stream?keys=well:1,room:42', { 'last-event-id': '1o4k8d~~gmjJrFASz6jr.7' }),
  request('GET /v1/stream?keys=well:1&ticket=pgQUbouVw0S2j4LNte6vUQ&after=1o4k8d~~gmjJrFASz6jr.7'),
  request('POST /v1/stream/send', { 'keycast-stream': 'pgQUbouVw0S2j4LNte6vUQ' }, { type: 'ping' }),
  request('POST /v1/ticket', { authorization: 'Bearer a.b.c' }),
]

const api = { authorization: 'Bearer a-token-for-tests', 'content-type': 'application/json' }

const ofBackends: Named<HttpMessage>[] = [
  request('POST /v1/refresh', api, { keys: ['well:1'], users: ['ann'] }),
  request('PUT /v1/values/told:1', { ...api, 'keycast-order': '7' }, { title: 'Seven' }),
  request('DELETE /v1/values/told:1', { ...api, 'keycast-order': '8' }),
  request('POST /v1/values', api, { key: 'told:1', value: 7, contentType: 'application/json', order: 7 }),
  request('POST /v1/publish', api, { key: 'room:1', data: 1, messageId: '0123456789abcdef', from: 'ann' }),
  request('POST /v1/access', api, { key: 'well:1', sub: 'ann', keys: { read: ['well:{sub}/*'] } }),
  request('POST /v1/access', api, { ask: { user: 'ann', key: 'well:1' } }),
  request('POST /v1/revoke', api, { jti: 'j' }),
  request('GET /v1/rooms/room:1', api),
  request('GET /v1/keys/well:1', api),
]

const lines = [
  'GET / HTTP/9.9',
  'GET  HTTP/1.1',
  '',
  'PRI * HTTP/2.0',
  `GET /${'a'.repeat(30_000)} HTTP/1.1`,
  'OPTIONS * HTTP/1.1',
  'CONNECT a:1 HTTP/1.1',
]

/** Targets whose path or query is absurd, behind the method. */
const targets = (valid: Named<HttpMessage>[]) =>
  fc.tuple(
    fc.constantFrom(...valid),
    absurdText(valid.map(([, { first }]) => first.split(' ')[1])),
    fc.constantFrom('', '/v1/', '/v1/stream?keys=', '/v1/wait/', '/v1/values/'),
  )

/** Requests that are absurd as HTTP, in their JSON, or in what they ask for. */
function absurdRequests(valid: Named<HttpMessage>[]): fc.Arbitrary<Buffer> {
  const withJson = valid.filter(([, { body }]) => body[0] === 0x7b)
  const withLength = (message: HttpMessage): HttpMessage => ({
    ...message,
    fields: [...message.fields, ['content-length', String(message.body.length)]],
  })
  const bodies = fc
    .constantFrom(...withJson)
    .chain(([name, message]) =>
      absurdJson([[name, JSON.parse(message.body.toString())]]).map(({ bytes }) =>
        written(withLength({ ...message, body: bytes })),
      ),
    )
  const asked = targets(valid).map(([[, message], target, before]) => {
    const [method] = message.first.split(' ', 1)
    return written(withLength({ ...message, first: `${method} ${before}${target} HTTP/1.1` }))
  })
  const asHttp = absurdHttp(valid, lines).map(({ bytes }) => bytes)
  return fc.oneof({ weight: 2, arbitrary: asHttp }, { weight: 1, arbitrary: bodies }, { weight: 1, arbitrary: asked })
}

interface Options {
  url: string
  isOn: () => boolean
  /** The address that all of it comes from, if not this host's first. */
  from?: string
  /** Between two of a kind. */
  paceMs?: number
}

export function fuzzPorts({ url, isOn, from, paceMs = 2 }: Options) {
  const { hostname: host, port } = new URL(url)

  /** Says absurd things for as long as it is on. @returns how many */
  async function repeat<T>(inputs: fc.Arbitrary<T>, say: (input: T) => Promise<unknown>) {
    let count = 0
    for (let round = 0; isOn(); round++) {
      for (const input of fc.sample(inputs, { numRuns: 100, seed: seed + round })) {
        if (!isOn()) break
        await say(input)
        count++
      }
    }
    return count
  }

  /** @returns once it is open, or will not be for a while */
  async function openSession(protocol: string) {
    const socket = new WebSocket(url, protocol, { localAddress: from })
    socket.on('error', () => {})
    await Promise.race([once(socket, 'open').catch(() => {}), pause(1_000)])
    return socket
  }

  /** @returns a socket whose answers nobody looks at */
  function openTcp(toPort = Number(port)) {
    const socket = connectTcp({ port: toPort, host, localAddress: from })
    socket.on('error', () => {})
    socket.resume()
    return socket
  }

  return {
    repeat,

    /** One session after the other, each until the gateway ends it. */
    async sessions(protocol: typeof JSON_SUBPROTOCOL | typeof BYTES_SUBPROTOCOL) {
      let socket: WebSocket | undefined
      const count = await repeat(absurdJson(requests), async ({ bytes }: Absurd) => {
        if (socket?.readyState !== WebSocket.OPEN) {
          socket?.terminate()
          socket = await openSession(protocol)
        }
        if (socket.readyState === WebSocket.OPEN) socket.send(bytes, { binary: false })
        await pause(paceMs)
      })
      socket?.terminate()
      return count
    },

    /** Frames after an upgrade, several on each connection. */
    async frames() {
      let socket: Socket | undefined
      const count = await repeat(frames, async frame => {
        if (!socket?.writable) {
          socket = openTcp()
          const [, { first, fields }] = request('GET /ws', {
            ...upgrade,
            'sec-websocket-extensions': 'permessage-deflate',
          })
          socket.write(written({ first, fields, body: Buffer.alloc(0) }))
          await Promise.race([once(socket, 'data').catch(() => {}), pause(1_000)])
        }
        socket.write(frame)
        await pause(paceMs)
        // One that waits for the rest of a frame would take all that follows for it.
        if (Math.random() < 0.2) socket.destroy()
      })
      socket?.destroy()
      return count
    },

    /** Over HTTP and in sessions. */
    async tokens() {
      let socket: WebSocket | undefined
      const count = await repeat(absurdTokens, async token => {
        if (socket?.readyState !== WebSocket.OPEN) socket = await openSession(JSON_SUBPROTOCOL)
        if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: 'auth', token }))
        const [, message] = request('GET /v1/values/well:1', {
          connection: 'close',
          authorization: `Bearer ${token}`,
        })
        const http = openTcp()
        http.end(written(message))
        await Promise.race([once(http, 'close').catch(() => {}), pause(20)])
        http.destroy()
        await pause(paceMs)
      })
      socket?.terminate()
      return count
    },

    /** Each on a connection of its own, which is closed whatever comes back. */
    requests(of: 'clients' | 'backends', toPort?: number) {
      return repeat(absurdRequests(of === 'clients' ? ofClients : ofBackends), async bytes => {
        const socket = openTcp(toPort)
        socket.end(bytes)
        await Promise.race([once(socket, 'close').catch(() => {}), pause(50)])
        socket.destroy()
        await pause(paceMs)
      })
    },
  }
}
