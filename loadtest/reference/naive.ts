#!/usr/bin/env node
import { createServer } from 'node:http'
import { createMetrics } from '@keycast/service/metrics'
import { type WebSocket, WebSocketServer } from 'ws'
import { changes, documentOf, isRoom, onTick, readArguments, welcome } from './content.ts'
// The server that most people write first: ws, and a JSON.stringify for each message to each client. With --workers it is
// the one they write next: node:cluster, and each message passes the primary to all processes.
import type { Hub } from './hub.ts'
import { serve } from './serve.ts'

const { bytes, change, ...listening } = readArguments({
  name: 'naive',
  about: 'Stringifies each message for each client: what most first versions do.',
})
const document = documentOf(bytes)
const { registry } = createMetrics({ service: 'reference' })

interface Membership {
  key: string
  name: string
}

const subscribers = new Map<string, Set<WebSocket>>()
let pongCount = 0

/** @param memberships of this socket */
function answer(
  hub: Hub,
  socket: WebSocket,
  memberships: Membership[],
  {
    type,
    id,
    key,
    keys,
    messageId,
    data,
    name,
  }: { type: string; id?: number; key: string; keys: string[]; messageId?: string; data?: unknown; name: string },
) {
  if (type === 'get') socket.send(JSON.stringify({ type: 'value', id, key, version: 'v1', data: document }))
  if (type === 'ping') socket.send(JSON.stringify({ type: 'pong', id, count: ++pongCount }))
  if (type === 'publish') {
    hub.publish({ key, messageId, data }, ({ seq, at }) =>
      socket.send(JSON.stringify({ type: 'published', id, key, epoch: 'e', seq, at })),
    )
  }
  if (type === 'join') {
    hub.claim(key, name, isGranted => {
      if (isGranted) memberships.push({ key, name })
      const refusal = { type: 'error', id, key, code: 'name_taken', message: 'somebody else has this name' }
      socket.send(JSON.stringify(isGranted ? { type: 'joined', id, key, name } : refusal))
    })
  }
  if (type === 'subscribe') {
    socket.send(JSON.stringify({ type: 'subscribed', id, keys: keys.map(each => ({ key: each })) }))
    for (const each of keys) {
      if (changes(each) || isRoom(each)) subscribersOf(each).add(socket)
      else socket.send(JSON.stringify({ type: 'value', key: each, version: 'v1', data: document }))
    }
  }
}

function subscribersOf(key: string) {
  const known = subscribers.get(key)
  if (known !== undefined) return known
  const sockets = new Set<WebSocket>()
  subscribers.set(key, sockets)
  if (isRoom(key)) return sockets
  onTick(key, change, data => {
    for (const socket of sockets) socket.send(JSON.stringify({ type: 'value', key, version: data.ns, data }))
  })
  return sockets
}

serve(listening, '/ws', hub => {
  const server = createServer(async (_, response) => response.end(await registry.metrics()))
  new WebSocketServer({ server, perMessageDeflate: false, clientTracking: false }).on('connection', socket => {
    const memberships: Membership[] = []
    socket.on('message', data => answer(hub, socket, memberships, JSON.parse(data.toString())))
    socket.on('close', () => {
      for (const sockets of subscribers.values()) sockets.delete(socket)
      for (const { key, name } of memberships) hub.release(key, name)
    })
    socket.send(JSON.stringify(welcome))
  })
  return {
    server,
    deliver(message) {
      for (const member of subscribersOf(message.key)) member.send(JSON.stringify({ type: 'message', ...message }))
    },
  }
})
