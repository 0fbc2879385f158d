// Lets HTTP upgrades at /ws in, or answers why not: each that is let in becomes a session. Attached to the HTTP server that
// also serves values.
import { ServerResponse, STATUS_CODES } from 'node:http'
import { chooseSubprotocol, subprotocols } from '../encodings/index.js'
import { countOne } from '../metrics.js'
import { readOrigins } from './allowed-origins.js'

/**
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {import('node:stream').Duplex} Duplex
 */

/** When to come back to a gateway that is full, in seconds: others may have room at once. */
const RETRY_AFTER_SECONDS = 5

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('../transport/accept.js').createAccept>} deps.accept
 * @param {(transport: import('../transport/transport.js').Transport) => void} deps.open
 * @param {() => number} deps.sessionCount
 * @param {() => boolean} deps.isDraining
 * @param {number} deps.sessionsMax
 * @param {string} deps.origins
 * @param {import('../metrics.js').Counts} deps.counts
 */
export function createUpgrades({ accept, open, sessionCount, isDraining, sessionsMax, origins, counts }) {
  const isAllowed = readOrigins(origins)

  /**
   * @param {import('node:http').Server} httpServer
   * @param {IncomingMessage} request
   * @param {Duplex} socket
   * @param {Buffer} head
   */
  function upgrade(httpServer, request, socket, head) {
    // First of all: an error without a listener ends the process.
    socket.on('error', destroy)
    const refusal = refusalOf(request)
    if (refusal) {
      countOne(counts.refused, refusal.reason)
      return refuse(socket, refusal)
    }
    accept(request, socket, head, transport => {
      socket.off('error', destroy)
      httpServer.emit('webSocket', socket)
      open(transport)
    })
  }

  /** @param {import('node:http').Server} httpServer */
  function attach(httpServer) {
    httpServer.on('upgrade', (request, socket, head) => {
      if (isOrdinary(request)) answerOrdinarily(httpServer, request, /** @type {import('node:net').Socket} */ (socket))
      else upgrade(httpServer, request, socket, head)
    })
  }

  /**
   * @param {IncomingMessage} request
   * @returns {Refusal | undefined}
   */
  function refusalOf({ url = '', headers }) {
    if (url.split('?', 1)[0] !== '/ws') return { status: 404, reason: 'path', message: 'WebSockets are served at /ws' }
    if (isDraining()) return unavailable('draining', 'this gateway is being stopped')
    if (sessionCount() >= sessionsMax) return unavailable('full', 'this gateway is full')
    // Only browsers send an origin, and no page can change it. A program can, so a request without one is let in.
    if (headers.origin !== undefined && !isAllowed(headers.origin)) {
      return { status: 403, reason: 'origin', message: 'pages of this origin may not connect' }
    }
    const offered = headers['sec-websocket-protocol']?.split(',').map(name => name.trim())
    if (offered && !chooseSubprotocol(offered)) {
      return { status: 400, reason: 'subprotocol', message: `offer ${subprotocols.join(' or ')}, or no subprotocol` }
    }
    return undefined
  }

  return { attach }
}

/**
 * Whether a request only offers to speak something else than HTTP, but not WebSocket: most of all `h2c`, as Java's HTTP
 * client and `curl --http2` do. A server may ignore the offer (RFC 9110 section 7.8). Node takes it for an upgrade all
 * the same, and does not read a body then; but nothing here takes one.
 *
 * @param {IncomingMessage} request
 */
function isOrdinary({ method, headers }) {
  return (method === 'GET' || method === 'HEAD') && !/\bwebsocket\b/i.test(headers.upgrade ?? '')
}

/**
 * Has a request answered that Node has detached from its server as an upgrade. The connection ends with it: nothing reads
 * it any more.
 *
 * @param {import('node:http').Server} httpServer
 * @param {IncomingMessage} request
 * @param {import('node:net').Socket} socket
 */
function answerOrdinarily(httpServer, request, socket) {
  socket.on('error', destroy)
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.once('finish', () => {
    response.detachSocket(socket)
    socket.destroySoon()
  })
  httpServer.emit('request', request, response)
}

/** @typedef {{ status: number, reason: string, message: string, retryAfterSeconds?: number }} Refusal */

/** @param {string} reason @param {string} message @returns {Refusal} */
const unavailable = (reason, message) => ({ status: 503, reason, message, retryAfterSeconds: RETRY_AFTER_SECONDS })

/** @param {Duplex} socket @param {Refusal} refusal */
function refuse(socket, { status, message, retryAfterSeconds }) {
  const body = `${message}\n`
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(retryAfterSeconds ? [`Retry-After: ${retryAfterSeconds}`] : []),
  ]
  socket.once('finish', destroy)
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** @this {Duplex} */
function destroy() {
  this.destroy()
}
