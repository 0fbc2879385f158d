#!/usr/bin/env node
// A chat as Socket.IO's own guide has it: rooms of the library, an event for each message, an acknowledgement for each
// publish. Nothing is kept.
import { createServer } from 'node:http'
import { createMetrics } from '@keycast/service/metrics'
import { Server } from 'socket.io'
import { readArguments } from './content.js'

const { host, port } = readArguments({ name: 'socket-io', about: 'Broadcasts messages with Socket.IO.' })
const { registry } = createMetrics({ service: 'reference' })
/** @type {Map<string, number>} */
const heads = new Map()

const server = createServer(async (_, response) => response.end(await registry.metrics()))
const io = new Server(server, { transports: ['websocket'], perMessageDeflate: false, serveClient: false })
io.on('connection', socket => {
  socket.on('enter', async (/** @type {string[]} */ rooms, /** @type {() => void} */ done) => {
    await socket.join(rooms)
    done()
  })
  socket.on(
    'publish',
    (
      /** @type {string} */ key,
      /** @type {string} */ messageId,
      /** @type {unknown} */ data,
      /** @type {(position: unknown) => void} */ done,
    ) => {
      const seq = (heads.get(key) ?? 0) + 1
      heads.set(key, seq)
      io.to(key).emit('message', { key, seq, at: Date.now(), messageId, data })
      done({ seq })
    },
  )
})
server.listen({ host, port, backlog: 4_096 }, () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const url = `ws://${host}:${port}/socket.io/?EIO=4&transport=websocket`
  console.log(JSON.stringify({ msg: 'listening', port, url }))
})
process.once('SIGTERM', () => process.exit(0))
