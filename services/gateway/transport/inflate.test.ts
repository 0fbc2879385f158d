import { createServer } from 'node:http'
import { type AddressInfo, connect as connectTcp } from 'node:net'
import { constants, deflateRawSync } from 'node:zlib'
import { type WebSocket, WebSocketServer } from 'ws'
import { createInflate, deflateOptions, isCompressed, takeableOffer } from './inflate.ts'

const BYTES_MAX = 100_000

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

/** As a client compresses a message. */
function compress(text: string, finish: number = constants.Z_SYNC_FLUSH) {
  const blocks = deflateRawSync(text, { finishFlush: finish })
  return finish === constants.Z_SYNC_FLUSH ? blocks.subarray(0, -4) : blocks
}

/** A masked frame, with a mask of zeros. */
function frame(firstByte: number, payload: Buffer) {
  const header = payload.length < 126 ? Buffer.from([firstByte, 0x80 | payload.length]) : Buffer.alloc(4)
  if (payload.length >= 126) {
    header.set([firstByte, 0x80 | 126])
    header.writeUInt16BE(payload.length, 2)
  }
  return Buffer.concat([header, Buffer.alloc(4), payload])
}

/** A connection that negotiated compression: this end of it, a raw socket at the other, what came and how it ended. */
async function connected() {
  const http = createServer()
  const wss = new WebSocketServer({ server: http, perMessageDeflate: deflateOptions, maxPayload: BYTES_MAX })
  await new Promise(resolve => http.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = http.address() as AddressInfo
  const peer = connectTcp(port, '127.0.0.1')
  const opened = new Promise<WebSocket>(resolve => wss.once('connection', resolve))
  peer.write(
    'GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n',
  )
  const ws = await opened
  createInflate(BYTES_MAX)(ws)
  const received: string[] = []
  const waiting: (() => void)[] = []
  ws.on('message', data => {
    received.push(data.toString())
    for (const wake of waiting.splice(0)) wake()
  })
  ws.on('ping', () => received.push('ping'))
  ws.on('error', () => {})
  cleanUps.push(() => {
    ws.terminate()
    peer.destroy()
    http.close()
  })
  const { _extensions }: { _extensions: Record<string, any> } = ws as any
  return {
    ws,
    peer,
    extension: _extensions['permessage-deflate'],
    async received(count: number) {
      while (received.length < count) await new Promise(resolve => waiting.push(() => resolve(undefined)))
      return received
    },
  }
}

test('messages arrive in order, compressed or not, and no stream is kept for it', async () => {
  const { ws, peer, extension, received } = await connected()
  expect(isCompressed(ws)).toBe(true)
  const long = 'long '.repeat(10_000)
  peer.write(
    Buffer.concat([
      frame(0xc1, compress('one')),
      frame(0x81, Buffer.from('two')),
      frame(0xc1, compress(long)),
      frame(0xc1, compress('')),
      frame(0xc1, compress('ended', constants.Z_FINISH)),
      frame(0x81, Buffer.from('last')),
    ]),
  )
  expect(await received(6)).toEqual(['one', 'two', long, '', 'ended', 'last'])
  expect(Object.entries(extension)).toEqual([['fragments', undefined]])
})

test('a message in fragments is one message, with a ping between them', async () => {
  const { peer, received } = await connected()
  const blocks = compress('one message in three frames')
  peer.write(
    Buffer.concat([
      frame(0x41, blocks.subarray(0, 5)),
      frame(0x89, Buffer.alloc(0)),
      frame(0x00, blocks.subarray(5, 9)),
      frame(0x80, blocks.subarray(9)),
      frame(0xc1, compress('next')),
    ]),
  )
  expect(await received(3)).toEqual(['ping', 'one message in three frames', 'next'])
})

test.each([
  ['that is no DEFLATE', Buffer.from([0xff, 0xff, 0xff]), 1007],
  ['that inflates to more than a message may have', compress('0'.repeat(BYTES_MAX + 1)), 1009],
  ['that is not UTF-8 when inflated', deflateRawSync(Buffer.from([0xff]), { finishFlush: 2 }).subarray(0, -4), 1007],
])('a message %s closes the connection, with the code for it', async (_, payload, code) => {
  const { peer } = await connected()
  peer.write(frame(0xc1, payload))
  const chunks = []
  for await (const chunk of peer) {
    chunks.push(chunk)
    const all = Buffer.concat(chunks)
    const close = all.indexOf(Buffer.from([0x88, 0x02]))
    if (close < 0) continue
    expect(all.readUInt16BE(close + 2)).toBe(code)
    return
  }
  throw new Error('it ended without a close')
})

test('a message of just the size allowed arrives', async () => {
  const { peer, received } = await connected()
  peer.write(frame(0xc1, compress('0'.repeat(BYTES_MAX))))
  expect((await received(1))[0]).toHaveLength(BYTES_MAX)
})

test.each([
  ['permessage-deflate', true],
  ['permessage-deflate; client_max_window_bits', true],
  ['permessage-deflate;client_max_window_bits="10"; server_no_context_takeover', true],
  ['Permessage-Deflate ; client_no_context_takeover', true],
  ['permessage-deflate; server_max_window_bits=12; client_max_window_bits=12', false],
  ['permessage-deflate; client_max_window_bits=7', false],
  ['permessage-deflate; level=9', false],
  ['permessage-bzip2', false],
  ['', false],
])('the offer "%s": %s', (offer, isTaken) => {
  expect(takeableOffer(offer)).toBe(isTaken ? offer : undefined)
})

test('of several offers the first that can be taken is', () => {
  const offers = 'x-webkit-deflate-frame, permessage-deflate; server_max_window_bits=10, permessage-deflate'
  expect(takeableOffer(offers)?.trim()).toBe('permessage-deflate')
  expect(takeableOffer(undefined)).toBeUndefined()
})
