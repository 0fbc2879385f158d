#!/usr/bin/env node
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
// The floor under every server: no WebSocket library, cache, backend or limits. It answers each request with one ready
// Buffer. Any cost of a real server above this is the price of its features.
import type { Duplex } from 'node:stream'
import { createMetrics } from '@keycast/service/metrics'
import { changes, documentOf, onTick, readArguments, welcome } from './content.ts'
import { serve } from './serve.ts'

const { bytes, change, ...listening } = readArguments({
  name: 'bare-sender',
  about: 'Writes one ready buffer to each request: the floor under every server.',
})
const document = Buffer.from(`${JSON.stringify(documentOf(bytes))}}`)
const { registry } = createMetrics({ service: 'reference' })

/** @param more bytes that follow as part of the same message */
const frameOf = (text: string, more = 0) => {
  const length = Buffer.byteLength(text) + more
  const header = length < 126 ? Buffer.alloc(2) : length < 65_536 ? Buffer.alloc(4) : Buffer.alloc(10)
  header[0] = 0x81
  header[1] = length < 126 ? length : length < 65_536 ? 126 : 127
  if (length >= 65_536) header.writeBigUInt64BE(BigInt(length), 2)
  else if (length >= 126) header.writeUInt16BE(length, 2)
  return Buffer.concat([header, Buffer.from(text)])
}

const welcomeFrame = frameOf(JSON.stringify(welcome))
/** The payload of a ping without id; the only request of its length. */
const PING_BYTES = '{"type":"ping"}'.length
const PONGS_MAX = 512
const pong = frameOf('{"type":"pong","count":1}')
const pongs = Buffer.concat(Array.from({ length: PONGS_MAX }, () => pong))

const subscribers = new Map<string, Set<Duplex>>()

function answer(socket: Duplex, { type, id, key, keys }: { type: string; id?: number; key: string; keys: string[] }) {
  if (type === 'get') return sendDocument(socket, key, id)
  if (type !== 'subscribe') return
  socket.write(frameOf(JSON.stringify({ type: 'subscribed', id, keys: keys.map(each => ({ key: each })) })))
  for (const each of keys) {
    if (changes(each)) subscribersOf(each).add(socket)
    else sendDocument(socket, each)
  }
}

function sendDocument(socket: Duplex, key: string, id?: number) {
  const head = JSON.stringify({ type: 'value', id, key, version: 'v1' })
  socket.cork()
  socket.write(frameOf(`${head.slice(0, -1)},"data":`, document.length))
  socket.write(document)
  socket.uncork()
}

function subscribersOf(key: string) {
  const known = subscribers.get(key)
  if (known !== undefined) return known
  const sockets = new Set<Duplex>()
  subscribers.set(key, sockets)
  onTick(key, change, data => {
    const frame = frameOf(JSON.stringify({ type: 'value', key, version: data.ns, data }))
    for (const socket of sockets) socket.write(frame)
  })
  return sockets
}

/** Reads a client's frames: short, masked, whole; whatever else comes ends the connection. */
function createReader(socket: Duplex) {
  let rest = Buffer.alloc(0)

  return (chunk: Buffer) => {
    const input = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let at = 0
    let pings = 0
    while (input.length - at >= 6) {
      const extended = (input[at + 1] & 0x7f) === 126
      const start = at + (extended ? 8 : 6)
      if (input.length < start) break
      const length = extended ? input.readUInt16BE(at + 2) : input[at + 1] & 0x7f
      if (input.length < start + length) break
      if (input[at] !== 0x81) {
        socket.destroy()
        return
      }
      if (length === PING_BYTES) {
        pings += 1
      } else {
        const payload = Buffer.from(input.subarray(start, start + length))
        for (let i = 0; i < length; i++) payload[i] ^= input[start - 4 + (i & 3)]
        answer(socket, JSON.parse(payload.toString()))
      }
      at = start + length
    }
    rest = at === input.length ? Buffer.alloc(0) : Buffer.from(input.subarray(at))
    for (; pings > 0; pings -= PONGS_MAX) socket.write(pongs.subarray(0, Math.min(pings, PONGS_MAX) * pong.length))
  }
}

serve(listening, '/ws', () => {
  const server = createServer(async (_, response) => response.end(await registry.metrics()))
  server.on('upgrade', (request, socket) => {
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    const head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      for (const sockets of subscribers.values()) sockets.delete(socket)
    })
    socket.on('data', createReader(socket))
    socket.write(head)
    socket.write(welcomeFrame)
  })
  return { server }
})
