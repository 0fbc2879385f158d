// The pair of sockets that a node binds for all gateways; dial.ts is the other end.
import { setImmediate } from 'node:timers/promises'
import { Pull, Router } from 'zeromq'
import type { Log } from '../gateway/link.ts'
import { type Bind, FAREWELL_MS } from '../hub/hub.ts'
import { REQUEST_BYTES_MAX } from '../wire/envelope.ts'
import { createRefusals, type Refusals } from './refusals.ts'
import { createWriter, receive } from './socket.ts'
import { startZap } from './zap.ts'

/** Z85: this node's secret, the public keys it admits. */
export interface HubCurve {
  secretKey: string
  clientKeys: string[]
}

/** Stands for the message of a stranger that sent none. */
const EMPTY = Buffer.alloc(0)

/**
 * TCP ends connections of hosts that vanished, which JavaScript cannot see: within 15 s, or within 10 s where something
 * is under way to them. Not ZMTP's heartbeats: libzmq 4.3.5 stops reading a connection whose queue is full, so it does not
 * see the answer to its heartbeat. It then ends the connection of a peer whose only fault is that this process is behind,
 * with all that is under way, and may abort the process (`!_io_error` in stream_engine_base.cpp).
 */
const vanishing = {
  tcpKeepalive: 1,
  tcpKeepaliveIdle: 5, // seconds, as the next
  tcpKeepaliveInterval: 5,
  tcpKeepaliveCount: 2,
  tcpMaxRetransmitTimeout: 10_000, // milliseconds
}

interface Options {
  log: Log
  now: () => number
  bound: (ports: { requestsPort: number; answersPort: number }) => void
  /** absent: plaintext, for loopback. */
  curve?: HubCurve
}

/** @param endpoints two `tcp://` addresses; port 0 or * takes a free one */
export const bindZeromq =
  ({ requests, answers }: { requests: string; answers: string }, { log, now, bound, curve }: Options): Bind =>
  async ({ request, beat }) => {
    const security = curve ? { curveServer: true, curveSecretKey: curve.secretKey, zapDomain: 'keycast' } : {}
    const pull = new Pull({ ...vanishing, ...security, maxMessageSize: REQUEST_BYTES_MAX, linger: 0 })
    // `mandatory`: without it a message to an unknown peer is dropped and reported as sent. No high-water mark: byte
    // credit bounds what is sent to each gateway, a count of messages would not.
    const router = new Router({
      ...vanishing,
      ...security,
      mandatory: true,
      sendTimeout: 0,
      sendHighWaterMark: 0,
      maxMessageSize: REQUEST_BYTES_MAX,
      linger: FAREWELL_MS,
    })
    let zap: Awaited<ReturnType<typeof startZap>> | undefined
    try {
      if (curve) {
        const refuse = createRefusals({ log, now })
        for (const socket of [pull, router]) reportRefused(socket, refuse)
        zap = await startZap({ clientKeys: curve.clientKeys, refuse })
      }
      await bindSocket(pull, requests)
      await bindSocket(router, answers)
    } catch (error) {
      pull.close()
      router.close()
      await zap?.close()
      throw error
    }
    bound({ requestsPort: portOf(pull), answersPort: portOf(router) })

    const writer = createWriter(router)
    let requestsRead = 0
    const readRequest = (parts: Buffer[]) => {
      requestsRead++
      request(parts)
    }
    const loops = [receive(pull, readRequest), receive(router, ([routingId, part]) => beat(part ?? EMPTY, routingId))]

    return {
      send(routingId, parts, failed) {
        writer.write([routingId, ...parts], error => error && failed())
      },
      // One that waits is read within two turns of the loop: zeromq.js may put the next receive off by one, and so may
      // receive.ts. The socket itself must not be asked: reading its events takes the wake-up of a receive under way.
      async hasReadAll() {
        const before = requestsRead
        await setImmediate()
        await setImmediate()
        return requestsRead === before
      },
      // No unbind first: in libzmq 4.3.5 that can abort the process while a peer's pipe ends. The addresses are free a
      // moment after the sockets are closed.
      async close() {
        pull.close()
        await writer.drained()
        router.close()
        await Promise.all(loops)
        await zap?.close()
      },
    }
  }

/** Logs peers without CURVE or with the wrong server key: they never get as far as the ZAP handler. */
async function reportRefused(socket: Pull | Router, refuse: Refusals) {
  for await (const event of socket.events) {
    if (!event.type.startsWith('handshake:error')) continue
    const { address, error } = event as unknown as { address: string; error: Error }
    refuse({ address }, `a client that does not fit was refused: ${error.message}`)
  }
}

async function bindSocket(socket: Pull | Router, endpoint: string) {
  try {
    await socket.bind(endpoint)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const [, address, port] = /^tcp:\/\/(.*):(\d+)$/.exec(endpoint) ?? []
    throw Object.assign(new Error(`cannot bind ${endpoint}: ${message}`), { code, address, port: Number(port) })
  }
}

function portOf(socket: Pull | Router) {
  return Number(String(socket.lastEndpoint).split(':').at(-1))
}
