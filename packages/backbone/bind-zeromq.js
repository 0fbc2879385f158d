// The pair of sockets a fetcher node binds for all gateways; dial-zeromq.js is the other end.
import { Pull, Router } from 'zeromq'
import { receive } from './receive.js'
import { decodeBeat, decodeRequest, REQUEST_BYTES_MAX, WireError } from './wire.js'
import { createWriter } from './writer.js'

/** ZMTP heartbeats, from the I/O thread: they end connections of hosts that vanished, which JavaScript cannot see. */
const heartbeat = { heartbeatInterval: 2_000, heartbeatTimeout: 6_000 }

/**
 * @param {{ requests: string, answers: string }} endpoints two `tcp://` addresses; port 0 or * takes a free one
 * @param {{ log: import('./link.js').Log, bound: (ports: { requestsPort: number, answersPort: number }) => void }} options
 * @returns {import('./hub.js').Bind}
 */
export const bindZeromq =
  ({ requests, answers }, { log, bound }) =>
  async ({ request, beat }) => {
    const pull = new Pull({ ...heartbeat, maxMessageSize: REQUEST_BYTES_MAX, linger: 0 })
    // `mandatory`: without it a message to nobody is dropped and reported as sent. No high-water mark: byte credit bounds
    // what is sent to each gateway, a count of messages would not.
    const router = new Router({
      ...heartbeat,
      mandatory: true,
      sendTimeout: 0,
      sendHighWaterMark: 0,
      maxMessageSize: REQUEST_BYTES_MAX,
      linger: 0,
    })
    try {
      await bindSocket(pull, requests)
      await bindSocket(router, answers)
    } catch (error) {
      pull.close()
      router.close()
      throw error
    }
    bound({ requestsPort: portOf(pull), answersPort: portOf(router) })

    const writer = createWriter(router)
    const loops = [
      receive(pull, ([part]) => decoded(() => request(decodeRequest(part)))),
      receive(router, ([routingId, part]) => decoded(() => beat(decodeBeat(part), routingId))),
    ]

    /** @param {() => void} handle */
    function decoded(handle) {
      try {
        handle()
      } catch (error) {
        // Not ours, or of another version. Its sender notices by the missing number; nothing here depends on it.
        if (!(error instanceof WireError)) throw error
        log.warn({ error: error.message }, 'a damaged message came from a gateway: dropped')
      }
    }

    return {
      send(routingId, parts, failed) {
        writer.write([routingId, ...parts], error => error && failed())
      },
      async close() {
        pull.close()
        router.close()
        await Promise.allSettled(loops)
      },
    }
  }

/** @param {Pull | Router} socket @param {string} endpoint */
async function bindSocket(socket, endpoint) {
  try {
    await socket.bind(endpoint)
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
    throw Object.assign(new Error(`cannot bind ${endpoint}: ${message}`), { code })
  }
}

/** @param {Pull | Router} socket */
function portOf(socket) {
  return Number(String(socket.lastEndpoint).split(':').at(-1))
}
