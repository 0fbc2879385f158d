#!/usr/bin/env node
// A chat and changing values as Socket.IO's own guide has them: rooms of the library, an event for each message, an
// acknowledgement for each request. Nothing is kept. Processes that share a port have rooms of their own each.
import { createServer } from 'node:http'
import { createMetrics } from '@keycast/service/metrics'
import { Server } from 'socket.io'
import { changes, documentOf, onTick, readArguments } from './content.ts'
import { serve } from './serve.ts'

const { bytes, change, ...listening } = readArguments({
  name: 'socket-io',
  about: 'Broadcasts messages and values with Socket.IO.',
})
const document = documentOf(bytes)
const { registry } = createMetrics({ service: 'reference' })
/** Keys that change, since somebody subscribed to them. */
const ticking = new Set<string>()
let pongCount = 0

serve(listening, '/socket.io/?EIO=4&transport=websocket', hub => {
  const server = createServer(async (_, response) => response.end(await registry.metrics()))
  const io = new Server(server, { transports: ['websocket'], perMessageDeflate: false, serveClient: false })
  io.on('connection', socket => {
    const memberships: { room: string; name: string }[] = []
    socket.on('enter', (room: string, name: string | null, answer) => {
      const enter = async (isGranted: boolean) => {
        if (!isGranted) return answer({ code: 'name_taken' })
        if (name) memberships.push({ room, name })
        await socket.join(room)
        return answer()
      }
      if (name) hub.claim(room, name, enter)
      else enter(true)
    })
    socket.on('publish', (key: string, messageId: string, data, answer) =>
      hub.publish({ key, messageId, data }, ({ seq }) => answer({ seq })),
    )
    socket.on('subscribe', async (keys: string[], answer) => {
      await socket.join(keys)
      for (const key of keys) if (changes(key)) startTicking(io, key)
      answer()
    })
    socket.on('get', (key: string, answer) => answer({ key, data: document }))
    socket.on('ping', () => socket.emit('pong', { count: ++pongCount }))
    socket.on('disconnect', () => {
      for (const { room, name } of memberships) hub.release(room, name)
    })
  })
  return { server, deliver: message => void io.to(message.key).emit('message', message) }
})

function startTicking(io: Server, key: string) {
  if (ticking.has(key)) return
  ticking.add(key)
  onTick(key, change, data => io.to(key).emit('value', { key, data }))
}
