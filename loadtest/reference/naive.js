#!/usr/bin/env node
// The server that most people write first: ws, and a JSON.stringify for each message to each client.
import { createServer } from 'node:http'
import { createMetrics } from '@keycast/service/metrics'
import { WebSocketServer } from 'ws'
import { changes, documentOf, isRoom, onTick, readArguments, welcome } from './content.js'

const { host, port, bytes, change } = readArguments({
  name: 'naive',
  about: 'Stringifies each message for each client: what most first versions do.',
})
const document = documentOf(bytes)
const { registry } = createMetrics({ service: 'reference' })

/** @typedef {import('ws').WebSocket} WebSocket */
/** @type {Map<string, Set<WebSocket>>} */
const subscribers = new Map()
let pongCount = 0
/** The number of messages of each room. @type {Map<string, number>} */
const heads = new Map()

/**
 * @param {WebSocket} socket
 * @param {{ type: string, id?: number, key: string, keys: string[], messageId?: string, data?: unknown }} message
 */
function answer(socket, { type, id, key, keys, messageId, data }) {
  if (type === 'get') socket.send(JSON.stringify({ type: 'value', id, key, version: 'v1', data: document }))
  if (type === 'ping') socket.send(JSON.stringify({ type: 'pong', id, count: ++pongCount }))
  if (type === 'publish') {
    const seq = (heads.get(key) ?? 0) + 1
    heads.set(key, seq)
    const message = { type: 'message', key, seq, at: Date.now(), messageId, data }
    for (const member of subscribersOf(key)) member.send(JSON.stringify(message))
    socket.send(JSON.stringify({ type: 'published', id, key, epoch: 'e', seq, at: message.at }))
  }
  if (type === 'subscribe') {
    socket.send(JSON.stringify({ type: 'subscribed', id, keys: keys.map(each => ({ key: each })) }))
    for (const each of keys) {
      if (changes(each) || isRoom(each)) subscribersOf(each).add(socket)
      else socket.send(JSON.stringify({ type: 'value', key: each, version: 'v1', data: document }))
    }
  }
}

/** @param {string} key */
function subscribersOf(key) {
  const known = subscribers.get(key)
  if (known !== undefined) return known
  /** @type {Set<WebSocket>} */
  const sockets = new Set()
  subscribers.set(key, sockets)
  if (isRoom(key)) return sockets
  onTick(change, data => {
    for (const socket of sockets) socket.send(JSON.stringify({ type: 'value', key, version: data.ns, data }))
  })
  return sockets
}

const server = createServer(async (_, response) => response.end(await registry.metrics()))
new WebSocketServer({ server, perMessageDeflate: false, clientTracking: false }).on('connection', socket => {
  socket.on('message', data => answer(socket, JSON.parse(data.toString())))
  socket.on('close', () => {
    for (const sockets of subscribers.values()) sockets.delete(socket)
  })
  socket.send(JSON.stringify(welcome))
})
server.listen({ host, port, backlog: 4_096 }, () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  console.log(JSON.stringify({ msg: 'listening', port, url: `ws://${host}:${port}/ws` }))
})
process.once('SIGTERM', () => process.exit(0))
