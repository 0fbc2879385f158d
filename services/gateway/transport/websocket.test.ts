import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, connect as connectTcp, type Socket } from 'node:net'
import { constants, deflateRawSync } from 'node:zlib'
import { realWorld } from '@keycast/service'
import * as ws from 'ws'
import { type PerMessageDeflateOptions, WebSocket, WebSocketServer } from 'ws'
import { randomNumbers } from '../../../test/support/random.js'
import { createReadingTurns } from '../sessions/reading-turns.ts'
import type { Session } from '../sessions/session.ts'
import { pingFrame, textFrame } from './frames.ts'
import { createInflate, deflateOptions } from './inflate.ts'
import { WebSocketTransport } from './websocket.ts'

/** Not in the published types, and not used outside this test. */
const { Sender } = ws as any

/** As ws frames a message. */
const byWs = (payload: Buffer, opcode = 1) =>
  Buffer.concat(Sender.frame(payload, { fin: true, opcode, mask: false, readOnly: true, rsv1: false }))

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

/** A real connection: this end of it, and a raw socket at the other. */
async function connected({ perMessageDeflate = false as false | PerMessageDeflateOptions } = {}) {
  const http = createServer()
  const wss = new WebSocketServer({ server: http, WebSocket: WebSocketTransport, perMessageDeflate })
  await new Promise(resolve => http.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = http.address() as AddressInfo
  const peer = connectTcp(port, '127.0.0.1')
  cleanUps.push(() => {
    peer.destroy()
    http.closeAllConnections()
    http.close()
  })
  const opened = new Promise(resolve => wss.once('connection', resolve))
  peer.write(
    'GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
      (perMessageDeflate ? 'Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n' : '\r\n'),
  )
  const ws = (await opened) as WebSocketTransport
  if (perMessageDeflate) createInflate(100_000)(ws)
  cleanUps.push(() => ws.terminate())
  // The answer to the upgrade.
  await new Promise(resolve => peer.once('data', resolve))
  return { ws, peer }
}

async function readBytes(peer: Socket, bytes: number) {
  const chunks = []
  let have = 0
  for await (const chunk of peer) {
    chunks.push(chunk)
    have += chunk.length
    if (have >= bytes) break
  }
  return Buffer.concat(chunks)
}

test('websocket.ts relies on ws 8.23.0: read the changes before another version is let in', () => {
  const require = createRequire(import.meta.url)
  expect(require('ws/package.json').version).toBe('8.23.0')
  expect(require('../package.json').dependencies.ws).toBe('8.23.0')
})

test('a socket has one listener of its end beside Node’s own, and forgets the address of its peer', async () => {
  for (const { ws } of [await connected(), await connected()]) {
    const socket = (ws as any)._socket
    const [, ofWs] = socket.listeners('end')
    expect(socket.remoteAddress).toMatch('127.0.0.1')
    ws.serve({} as any, { onClose() {}, after: realWorld.after } as any)
    expect(socket.listeners('end')).toHaveLength(2)
    expect(socket.listeners('end')[1]).not.toBe(ofWs)
    expect(ofWs.name).toBe('socketOnEnd')
    expect(socket._peername).toBeUndefined()
  }
})

test('pieces arrive in order: texts framed, frames as they are, large ones between small ones', async () => {
  const { ws, peer } = await connected()
  const large = textFrame('l'.repeat(100_000)).frame
  const pieces = ['first ü', textFrame('second').frame, large, 'x'.repeat(300), large, textFrame('last').frame]
  const expected = Buffer.concat(pieces.map(piece => (typeof piece === 'string' ? byWs(Buffer.from(piece)) : piece)))

  ws.write(pieces)

  expect((await readBytes(peer, expected.length)).equals(expected)).toBe(true)
})

test('a client understands what is written past ws, and ws goes on sending beside it', async () => {
  const http = createServer()
  const wss = new WebSocketServer({ server: http, WebSocket: WebSocketTransport })
  await new Promise(resolve => http.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = http.address() as AddressInfo
  wss.once('connection', ws => {
    ws.write(['one', pingFrame, 'two'])
    ws.send('three')
    ws.write([textFrame('four').frame])
    ws.close(4008, 'done')
  })
  const client = new WebSocket(`ws://127.0.0.1:${port}`)
  cleanUps.push(() => http.close())
  const received: string[] = []
  client.on('message', data => received.push(data.toString()))
  client.on('ping', () => received.push('ping'))
  const code = await new Promise(resolve => client.once('close', resolve))
  expect(received).toEqual(['one', 'ping', 'two', 'three', 'four'])
  expect(code).toBe(4008)
})

test('several small pieces cost one write to the socket', async () => {
  const { ws } = await connected()
  const socket = (ws as any)._socket
  let writes = 0
  const write = socket.write.bind(socket)
  socket.write = (bytes: Buffer) => {
    writes++
    return write(bytes)
  }
  ws.write(['a', textFrame('b').frame, 'c'])
  expect(writes).toBe(1)
})

test('a socket whose client does not read is stalled, and says when it no longer is', async () => {
  const { ws, peer } = await connected()
  peer.pause()
  const drained = new Promise(onDrain =>
    ws.serve({ id: 'the session' } as any, { onDrain, onClose() {}, after: realWorld.after } as any),
  )
  const large = textFrame('x'.repeat(1_000_000)).frame

  ws.write([large])
  while (!ws.isStalled()) {
    ws.write([large])
    await new Promise(resolve => setImmediate(resolve))
  }

  peer.resume()
  expect(await drained).toEqual({ id: 'the session' })
  expect(ws.isStalled()).toBe(false)
})

test('while a client reads some of what was written, the bytes taken become more', async () => {
  const { ws, peer } = await connected()
  peer.pause()
  const large = textFrame('x'.repeat(30_000_000)).frame
  ws.write([large])
  expect(ws.isStalled()).toBe(true)
  // Waits until the kernel's buffers are full and take no more.
  let taken = -1
  while (ws.takenBytes() > taken) {
    taken = ws.takenBytes()
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  expect(taken).toBeLessThan(large.length)

  peer.on('data', () => ws.takenBytes() > taken && peer.pause())
  peer.resume()
  while (ws.takenBytes() === taken) await new Promise(resolve => setImmediate(resolve))
  peer.pause()
  expect(ws.isStalled()).toBe(true)
  expect(ws.takenBytes()).toBeLessThan(large.length)

  ws.terminate()
  expect(ws.takenBytes()).toBe(0)
})

test('a large write the kernel took at once is no stall', async () => {
  const { ws, peer } = await connected()
  peer.resume()
  ws.write([textFrame('x'.repeat(20_000)).frame])
  expect(ws.isStalled()).toBe(false)
})

test('what a connection reports comes with its session', async () => {
  const { ws, peer } = await connected()
  const session = { id: 'x' } as any
  const reported: unknown[][] = []
  const closed = new Promise(resolve =>
    ws.serve(session, {
      after: realWorld.after,
      onMessage: (...given) => reported.push(['message', ...given]),
      onPing: (...given) => reported.push(['ping', ...given]),
      onPong: (...given) => reported.push(['pong', ...given]),
      mayReadOn: () => true,
      onUnfinished: (...given) => reported.push(['unfinished', ...given]),
      onDrain() {},
      onClose: (...given) => resolve(given),
    }),
  )
  // A text, a ping and a pong, masked with zeros; then a close that says 1001.
  peer.write(
    Buffer.from([
      0x81, 0x81, 0, 0, 0, 0, 0x61, 0x89, 0x80, 0, 0, 0, 0, 0x8a, 0x80, 0, 0, 0, 0, 0x88, 0x82, 0, 0, 0, 0, 3, 0xe9,
    ]),
  )
  expect(await closed).toEqual([session, 1001])
  expect(reported).toEqual([
    ['message', session, Buffer.from('a'), false],
    ['ping', session, Buffer.alloc(0)],
    ['pong', session],
  ])
})

/** What a client sends: a text, masked with zeros. */
const masked = (text: string) => Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])

test.each(['ended', 'closing'] as const)(
  'what comes behind the message by which a session is %s is ignored',
  async how => {
    const { ws, peer } = await connected()
    const session = { ended: false } as Session
    const came: string[] = []
    const events = {
      onMessage(_: Session, data: Buffer) {
        came.push(String(data))
        if (how === 'ended') session.ended = true
        else session.closing = 'abusive'
      },
      onUnfinished() {},
      onClose() {},
      after: realWorld.after,
    }
    ws.serve(session, events as any)
    const closed = new Promise(resolve => ws.once('close', resolve))
    peer.write(Buffer.concat([masked('the last'), ...Array(5_000).fill(masked('late'))]))
    // In reads of their own, the second one without the start of a frame.
    for (const late of [masked('late'), Buffer.alloc(100, 0xff)]) {
      await new Promise(resolve => setImmediate(resolve))
      peer.write(late)
    }
    peer.end()
    await closed
    expect(came).toEqual(['the last'])
  },
)

test('behind a message that comes while a session is closed, the answer to the close is read', async () => {
  const { ws, peer } = await connected()
  ws.serve({ ended: true } as Session, { onMessage() {}, onClose() {}, after: realWorld.after } as any)
  const closed = new Promise(resolve => ws.once('close', resolve))
  ws.close(4008, 'done')
  const answer = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x0f, 0xa8])
  peer.write(Buffer.concat([masked('late'), answer]))
  expect(await closed).toBe(4008)
})

test('what comes behind a message waits where it is not the turn of its session, and is all read in order in the end', async () => {
  const { ws, peer } = await connected()
  const came: string[] = []
  const held: number[] = []
  let paused: (() => void) | undefined
  const session = { ended: false } as Session
  ws.serve(session, {
    onMessage: (_: Session, data: Buffer) => void came.push(String(data)),
    onPing: () => void came.push('ping'),
    onPong: () => void came.push('pong'),
    onUnfinished: (_: Session, bytes: number) => void held.push(bytes),
    onClose() {},
    after: realWorld.after,
    mayReadOn() {
      setImmediate(() => paused?.())
      return false
    },
  } as any)
  const closed = new Promise(resolve => ws.once('close', resolve))
  const [fragment, ping, pong, rest] = [
    [0x01, 0x81, 0, 0, 0, 0, 0x61],
    [0x89, 0x80, 0, 0, 0, 0],
    [0x8a, 0x80, 0, 0, 0, 0],
    [0x80, 0x81, 0, 0, 0, 0, 0x62],
  ].map(bytes => Buffer.from(bytes))
  const close = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 3, 0xe9])
  const large = masked('x'.repeat(100))
  let pauses = new Promise<void>(resolve => (paused = resolve))
  peer.write(Buffer.concat([masked('first'), fragment, ping, pong, rest, large, masked('last'), close]))
  peer.end()
  const order = ['first', 'ping', 'pong', 'ab', 'x'.repeat(100), 'last']
  for (let seen = 1; seen <= order.length; seen++) {
    await pauses
    expect([came, ws.isPaused]).toEqual([order.slice(0, seen), true])
    expect(held.at(-1)).toBeGreaterThan(256)
    pauses = new Promise<void>(resolve => (paused = resolve))
    ws.readOn()
  }
  expect(await closed).toBe(1001)
})

test('while a session waits to be read, its socket is read once more at most', async () => {
  const { ws, peer } = await connected()
  let paused: () => void
  const waits = new Promise<void>(resolve => (paused = resolve))
  const mayReadOn = () => void paused()
  ws.serve({ ended: false } as Session, { onMessage() {}, onUnfinished() {}, onClose() {}, mayReadOn } as any)
  peer.write(Buffer.concat([masked('a'), masked('b')]))
  await waits
  const { length } = masked('b')
  for (let n = 0; n < 50; n++) {
    await new Promise<void>(resolve => peer.write(masked('c'), () => resolve()))
    await new Promise(setImmediate)
  }
  expect((ws as any)._socket.readableLength).toBeLessThanOrEqual(2 * length)
})

test('bursts of many sockets of one account keep nobody waiting who asks one thing', async () => {
  const HOGS = 20
  const BURST = 1_000
  let nowMs = 0
  const turns = createReadingTurns({ now: () => nowMs, turn: run => void setImmediate(run) })
  const handled: unknown[] = []
  let finish: () => void
  const finished = new Promise<void>(resolve => (finish = resolve))
  const events = {
    onMessage({ payer }: Session) {
      nowMs += 1
      handled.push(payer)
      if (handled.length === HOGS * BURST + 1) finish()
    },
    onUnfinished() {},
    onClose() {},
    mayReadOn: turns.mayReadOn,
  } as any
  const peers = []
  for (let id = 0; id <= HOGS; id++) {
    const { ws, peer } = await connected()
    ws.serve({ ended: false, payer: id < HOGS ? 'a1.u1' : 'a2.u2', transport: ws } as any, events)
    peers.push(peer)
  }
  const burst = Buffer.concat(Array(BURST).fill(masked('{}')))
  for (const [id, peer] of peers.entries()) peer.write(id < HOGS ? burst : masked('{}'))
  await finished
  expect(handled.indexOf('a2.u2')).toBeLessThan(3 * HOGS)
})

test.each([1, 2, 3])('messages come in order, compressed or not, in whatever reads and turns, seed %i', async seed => {
  const random = randomNumbers(seed)
  const { ws, peer } = await connected({ perMessageDeflate: deflateOptions })
  const came: number[] = []
  const events = {
    onMessage: (_: Session, data: Buffer) => void came.push(Number(data)),
    onUnfinished() {},
    onClose() {},
    mayReadOn() {
      if (random() < 0.5) return true
      const readOn = () => ws.readOn()
      if (random() < 0.5) setImmediate(readOn)
      else process.nextTick(readOn)
      return false
    },
  }
  ws.serve({ ended: false } as Session, events as any)
  const order = Array.from({ length: 2_000 }, (_, id) => id)
  const compressed = (text: string) => {
    const body = deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
    return Buffer.concat([Buffer.from([0xc1, 0x80 | body.length, 0, 0, 0, 0]), body])
  }
  const bytes = Buffer.concat(order.map(id => (random() < 0.5 ? masked(String(id)) : compressed(String(id)))))
  for (let at = 0; at < bytes.length; ) {
    const end = at + Math.ceil(random() * 5_000)
    peer.write(bytes.subarray(at, end))
    at = end
    if (random() < 0.5) await new Promise(resolve => setImmediate(resolve))
  }
  while (came.length < order.length) await new Promise(resolve => setImmediate(resolve))
  expect(came).toEqual(order)
})

test('no name that a connection is given here is one of ws', () => {
  const { constructor: _, ...own } = Object.getOwnPropertyDescriptors(WebSocketTransport.prototype)
  const fields = Object.keys(new WebSocket(null as any, undefined, {}))
  for (const name of ['session', 'events', ...Object.keys(own)]) {
    expect(name in WebSocket.prototype).toBe(false)
    expect(fields).not.toContain(name)
  }
})

test.each([
  ['with nothing to read', () => {}, 0],
  ['with more to read than it does', (ws: WebSocketTransport) => fill(ws), 5_000],
  [
    'with more to read, after it was told that it is closed',
    (ws: WebSocketTransport) => {
      fill(ws)
      ws.close(4008, 'slow')
    },
    5_000,
  ],
])('a client that shuts down its side, %s, is gone soon', async (_, before, waitMs) => {
  const { ws, peer } = await connected()
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] })
  cleanUps.push(() => jest.useRealTimers())
  peer.pause()
  const closed = new Promise(onClose =>
    ws.serve({ id: 'the session' } as any, { onDrain() {}, onClose, after: realWorld.after } as any),
  )
  const socket = (ws as any)._socket
  const ended = new Promise(resolve => socket.once('end', resolve))
  before(ws)
  peer.end()
  await ended
  jest.advanceTimersByTime(waitMs)
  await closed
})

/** Writes until the client would have to read. */
function fill(ws: WebSocketTransport) {
  const large = textFrame('x'.repeat(1_000_000)).frame
  while (!ws.isStalled()) ws.write([large])
}

test('a message of which the rest is to come is counted with what its reads cost, and no longer once it is whole', async () => {
  const { ws, peer } = await connected()
  const reported: number[] = []
  let wake: (() => void) | undefined
  const next = () => new Promise(resolve => (wake = () => resolve(undefined)))
  ws.serve(
    { id: 'x' } as any,
    {
      onUnfinished(_: unknown, bytes: number) {
        reported.push(bytes)
        wake?.()
      },
      onMessage() {},
      onPong() {},
      onClose() {},
    } as any,
  )
  const steps = [
    [[0x01, 0x81, 0, 0, 0, 0, 0x61], 263], // a fragment
    [[0x8a, 0x80, 0, 0, 0, 0], 525], // a pong, which keeps it alive
    [[0x00, 0x82, 0, 0, 0, 0, 0x61], 788], // half of another fragment
    [[0x61, 0x80, 0x80, 0, 0, 0, 0], 0], // its other half, and the last
  ]
  for (const [bytes, expected] of steps as [number[], number][]) {
    const come = next()
    peer.write(Buffer.from(bytes))
    await come
    expect(reported.at(-1)).toBe(expected)
  }
})
