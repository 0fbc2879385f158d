import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { connect as connectTcp } from 'node:net'
import * as ws from 'ws'
import { WebSocket, WebSocketServer } from 'ws'
import {
  binaryFrameStart,
  headerBytes,
  isStalled,
  onDrain,
  pingFrame,
  pongFrame,
  SessionSocket,
  sessionOf,
  takenBytes,
  textFrame,
  textFrameStart,
  writePieces,
} from './websocket.js'

/** Not in the published types, and not used outside this test. */
const { Sender } = /** @type {any} */ (ws)

/** As ws frames a message. @param {Buffer} payload @param {number} [opcode] */
const byWs = (payload, opcode = 1) =>
  Buffer.concat(Sender.frame(payload, { fin: true, opcode, mask: false, readOnly: true, rsv1: false }))

/** @type {(() => void)[]} */
const cleanUps = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

/** A real connection: this end of it, and a raw socket at the other. */
async function connected() {
  const http = createServer()
  const wss = new WebSocketServer({ server: http, WebSocket: SessionSocket, perMessageDeflate: false })
  await new Promise(resolve => http.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (http.address())
  const peer = connectTcp(port, '127.0.0.1')
  cleanUps.push(() => {
    peer.destroy()
    http.closeAllConnections()
    http.close()
  })
  const opened = new Promise(resolve => wss.once('connection', resolve))
  peer.write(
    'GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  const ws = /** @type {SessionSocket} */ (await opened)
  cleanUps.push(() => ws.terminate())
  // The answer to the upgrade.
  await new Promise(resolve => peer.once('data', resolve))
  return { ws, peer }
}

/** @param {import('node:net').Socket} peer @param {number} bytes */
async function readBytes(peer, bytes) {
  const chunks = []
  let have = 0
  for await (const chunk of peer) {
    chunks.push(chunk)
    have += chunk.length
    if (have >= bytes) break
  }
  return Buffer.concat(chunks)
}

test('what is known here is known of ws 8.23.0: read its changes before another version is let in', () => {
  const require = createRequire(import.meta.url)
  expect(require('ws/package.json').version).toBe('8.23.0')
  expect(require('../package.json').dependencies.ws).toBe('8.23.0')
})

test.each([0, 1, 125, 126, 127, 65_535, 65_536, 200_000])('a frame of %i bytes is the one ws would send', bytes => {
  const text = 'x'.repeat(bytes)
  expect(textFrame(text).frame.equals(byWs(Buffer.from(text)))).toBe(true)
  expect(headerBytes(bytes)).toBe(byWs(Buffer.from(text)).length - bytes)
})

test.each([0, 100, 65_535, 200_000])('a binary frame of %i bytes and a head is the one ws would send', bytes => {
  const rest = Buffer.alloc(bytes, 0xff)
  const frame = Buffer.concat([binaryFrameStart('head', bytes), rest])
  expect(frame.equals(byWs(Buffer.concat([Buffer.from('head'), rest]), 2))).toBe(true)
})

test('head, body and tail make one message, and the offset is that of the body', () => {
  const body = Buffer.from('"ü"')
  const { frame, bodyOffset } = textFrame('{"é":', body, '}')
  expect(frame.equals(byWs(Buffer.from('{"é":"ü"}')))).toBe(true)
  expect(frame.subarray(bodyOffset).toString()).toBe('"ü"}')
})

test('a start and its rest make one message', () => {
  const rest = Buffer.from('x'.repeat(70_000))
  expect(Buffer.concat([textFrameStart('{"ü":', rest.length), rest]).equals(byWs(Buffer.from(`{"ü":${rest}`)))).toBe(
    true,
  )
})

test('pings and pongs are the ones ws would send', () => {
  expect(pingFrame).toEqual(byWs(Buffer.alloc(0), 9))
  expect(pongFrame(Buffer.from('abc'))).toEqual(byWs(Buffer.from('abc'), 10))
  expect(() => pongFrame(Buffer.alloc(126))).toThrow(RangeError)
})

test('frames kept for many sessions own their memory, for a slice of a pool would keep all of it', () => {
  expect(textFrame('{}').frame.buffer.byteLength).toBe(4)
})

test('pieces arrive in order: texts framed, frames as they are, large ones between small ones', async () => {
  const { ws, peer } = await connected()
  const large = textFrame('l'.repeat(100_000)).frame
  const pieces = ['first ü', textFrame('second').frame, large, 'x'.repeat(300), large, textFrame('last').frame]
  const expected = Buffer.concat(pieces.map(piece => (typeof piece === 'string' ? byWs(Buffer.from(piece)) : piece)))

  writePieces(ws, pieces)

  expect((await readBytes(peer, expected.length)).equals(expected)).toBe(true)
})

test('a client understands what is written past ws, and ws goes on sending beside it', async () => {
  const http = createServer()
  const wss = new WebSocketServer({ server: http, WebSocket: SessionSocket })
  await new Promise(resolve => http.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (http.address())
  wss.once('connection', ws => {
    writePieces(ws, ['one', pingFrame, 'two'])
    ws.send('three')
    writePieces(ws, [textFrame('four').frame])
    ws.close(4008, 'done')
  })
  const client = new WebSocket(`ws://127.0.0.1:${port}`)
  cleanUps.push(() => http.close())
  /** @type {string[]} */
  const received = []
  client.on('message', data => received.push(data.toString()))
  client.on('ping', () => received.push('ping'))
  const code = await new Promise(resolve => client.once('close', resolve))
  expect(received).toEqual(['one', 'ping', 'two', 'three', 'four'])
  expect(code).toBe(4008)
})

test('several small pieces cost one write to the socket', async () => {
  const { ws } = await connected()
  const socket = /** @type {any} */ (ws)._socket
  let writes = 0
  const write = socket.write.bind(socket)
  socket.write = (/** @type {Buffer} */ bytes) => {
    writes++
    return write(bytes)
  }
  writePieces(ws, ['a', textFrame('b').frame, 'c'])
  expect(writes).toBe(1)
})

test('a socket whose client does not read is stalled, and says when it no longer is', async () => {
  const { ws, peer } = await connected()
  peer.pause()
  const drained = new Promise(resolve => onDrain(ws, resolve))
  ws.session = /** @type {any} */ ({ id: 'the session' })
  const large = textFrame('x'.repeat(1_000_000)).frame

  writePieces(ws, [large])
  while (!isStalled(ws)) {
    writePieces(ws, [large])
    await new Promise(resolve => setImmediate(resolve))
  }

  peer.resume()
  expect(await drained).toEqual({ id: 'the session' })
  expect(isStalled(ws)).toBe(false)
})

test('while a client reads some of what it is owed, the bytes taken become more', async () => {
  const { ws, peer } = await connected()
  peer.pause()
  const large = textFrame('x'.repeat(30_000_000)).frame
  writePieces(ws, [large])
  expect(isStalled(ws)).toBe(true)
  // What the kernel takes before its buffers are full.
  let taken = -1
  while (takenBytes(ws) > taken) {
    taken = takenBytes(ws)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  expect(taken).toBeLessThan(large.length)

  peer.on('data', () => takenBytes(ws) > taken && peer.pause())
  peer.resume()
  while (takenBytes(ws) === taken) await new Promise(resolve => setImmediate(resolve))
  peer.pause()
  expect(isStalled(ws)).toBe(true)
  expect(takenBytes(ws)).toBeLessThan(large.length)

  ws.terminate()
  expect(takenBytes(ws)).toBe(0)
})

test('a large write the kernel took at once is no stall', async () => {
  const { ws, peer } = await connected()
  peer.resume()
  writePieces(ws, [textFrame('x'.repeat(20_000)).frame])
  expect(isStalled(ws)).toBe(false)
})

test('a connection of this class has room for its session', async () => {
  const { ws } = await connected()
  expect(sessionOf(ws)).toBeUndefined()
  ws.session = /** @type {any} */ ({ id: 'x' })
  expect(sessionOf(ws)).toEqual({ id: 'x' })
})
