#!/usr/bin/env node
// A chat and changing values in SocketCluster's channels, as its guide has them. Nothing is kept. Processes that share a
// port have channels of their own each: what would join them is a broker, which is another program.
import { createServer } from 'node:http'
import { createMetrics } from '@keycast/service/metrics'
// @ts-expect-error it comes without types
import { attach } from 'socketcluster-server'
import { changes, documentOf, onTick, readArguments } from './content.ts'
import { serve } from './serve.ts'

const { bytes, change, ...listening } = readArguments({
  name: 'socketcluster',
  about: 'Broadcasts messages and values in channels of SocketCluster.',
})
const document = documentOf(bytes)
const { registry } = createMetrics({ service: 'reference' })
/** Channels that change, since somebody subscribed to them. */
const ticking = new Set<string>()
let pongCount = 0

serve(listening, '/socketcluster/', hub => {
  const server = createServer(async (_, response) => response.end(await registry.metrics()))
  const cluster = attach(server)
  const { exchange, brokerEngine } = cluster
  // Members check that they are sent every message in order: what clients publish is numbered on its way to the broker.
  const publish = brokerEngine.invokePublish.bind(brokerEngine)
  brokerEngine.invokePublish = (key: string, { messageId, data }: { messageId?: string; data?: unknown }) =>
    new Promise(resolve => hub.publish({ key, messageId, data }, resolve))

  each(cluster.listener('connection'), ({ socket }: { socket: Socket }) => {
    const memberships: { room: string; name: string }[] = []
    each(socket.procedure('claim'), request => {
      const { room, name } = request.data
      hub.claim(room, name, isGranted => {
        if (!isGranted) return request.error(Object.assign(new Error('somebody else has it'), { code: 'name_taken' }))
        memberships.push({ room, name })
        return request.end()
      })
    })
    each(socket.procedure('get'), request => request.end({ key: request.data, data: document }))
    each(socket.receiver('ping'), () => socket.transmit('pong', { count: ++pongCount }))
    each(socket.listener('close'), () => {
      for (const { room, name } of memberships) hub.release(room, name)
    })
  })
  each(cluster.listener('subscription'), ({ channel }: { channel: string }) => {
    if (!changes(channel) || ticking.has(channel)) return
    ticking.add(channel)
    onTick(channel, change, data => exchange.transmitPublish(channel, { key: channel, data }))
  })
  return { server, deliver: ({ key, ...message }) => void publish(key, message) }
})

/** The server's end of a connection: what its package's types do not say. */
interface Socket {
  procedure: (name: string) => AsyncIterable<Call>
  receiver: (name: string) => AsyncIterable<unknown>
  listener: (name: string) => AsyncIterable<unknown>
  transmit: (event: string, data: unknown) => void
}

interface Call {
  data: { room: string; name: string }
  end: (answer?: unknown) => void
  error: (error: Error) => void
}

async function each<Event>(events: AsyncIterable<Event>, listener: (event: Event) => void) {
  for await (const event of events) listener(event)
}
