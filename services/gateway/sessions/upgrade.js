// Turns HTTP upgrades at /ws into connections for sessions, or answers why not. Attached to the HTTP server that also serves
// values.
import { ServerResponse, STATUS_CODES } from 'node:http'
import { WebSocketServer } from 'ws'
import { subprotocols } from '../encodings/index.js'
import { countOne } from '../metrics.js'
import { createInflate, deflateOptions, takeableOffer } from '../transport/inflate.js'
import { WebSocketTransport } from '../transport/websocket.js'
import { readOrigins } from './origins.js'

/**
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {import('node:stream').Duplex} Duplex
 */

/** A client's message needs few fragments; each unfinished one is memory that a stranger can claim. */
const FRAGMENTS_MAX = 64

/** Reads a message may arrive in: at 256 KiB even segments of 536 bytes are half of it. */
const CHUNKS_MAX = 1_024

/** How long a close may stay unanswered before the connection is cut. */
const CLOSE_TIMEOUT_MS = 5_000

/** When to come back to a gateway that is full, in seconds: others may have room at once. */
const RETRY_AFTER_SECONDS = 5

/**
 * @param {object} deps
 * @param {(ws: WebSocketTransport) => void} deps.open
 * @param {() => number} deps.sessionCount
 * @param {() => boolean} deps.isDraining
 * @param {{ sessionsMax: number, messageBytesMax: number, origins: string,
 *   compression: boolean }} deps.settings
 * @param {import('../metrics.js').Counts} deps.counts
 */
export function createUpgrades({ open, sessionCount, isDraining, settings, counts }) {
  const isAllowed = readOrigins(settings.origins)

  const options = {
    noServer: true,
    WebSocket: WebSocketTransport,
    clientTracking: false,
    // Pongs go through the outbox as everything does, so that a client that pings and never reads is bounded with it.
    autoPong: false,
    maxPayload: settings.messageBytesMax,
    maxFragments: FRAGMENTS_MAX,
    maxBufferedChunks: CHUNKS_MAX,
    closeTimeout: CLOSE_TIMEOUT_MS,
    perMessageDeflate: settings.compression && deflateOptions,
    handleProtocols: (/** @type {Set<string>} */ offered) => preferred(offered) ?? false,
  }
  const server = new WebSocketServer(options)
  const inflateInPlace = createInflate(settings.messageBytesMax)

  /** @param {IncomingMessage} request @param {Duplex} socket @param {Buffer} head */
  function upgrade(request, socket, head) {
    // First of all: an error without a listener ends the process.
    socket.on('error', destroy)
    const refusal = refusalOf(request)
    if (refusal) {
      countOne(counts.refused, refusal.reason)
      return refuse(socket, refusal)
    }
    const { headers } = request
    headers['sec-websocket-extensions'] = takeableOffer(headers['sec-websocket-extensions'])
    server.handleUpgrade(request, socket, head, ws => {
      socket.off('error', destroy)
      inflateInPlace(ws)
      open(/** @type {WebSocketTransport} */ (ws))
    })
  }

  /** @param {import('node:http').Server} httpServer */
  function attach(httpServer) {
    httpServer.on('upgrade', (request, socket, head) => {
      if (isOrdinary(request)) answerOrdinarily(httpServer, request, /** @type {import('node:net').Socket} */ (socket))
      else upgrade(request, socket, head)
    })
  }

  /**
   * @param {IncomingMessage} request
   * @returns {Refusal | undefined}
   */
  function refusalOf({ url = '', headers }) {
    if (url.split('?', 1)[0] !== '/ws') return { status: 404, reason: 'path', message: 'WebSockets are served at /ws' }
    if (isDraining()) return unavailable('draining', 'this gateway is being stopped')
    if (sessionCount() >= settings.sessionsMax) return unavailable('full', 'this gateway is full')
    // Only browsers send it, and cannot be made to lie about it by a page; a program could, so one without is let in.
    if (headers.origin !== undefined && !isAllowed(headers.origin)) {
      return { status: 403, reason: 'origin', message: 'pages of this origin may not connect' }
    }
    const offered = headers['sec-websocket-protocol']?.split(',').map(name => name.trim())
    if (offered && !preferred(offered)) {
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

/**
 * The subprotocol spoken with a client: the first it offers of those known, for it names the one it prefers first
 * (RFC 6455 section 4.1).
 *
 * @param {Iterable<string>} offered
 */
function preferred(offered) {
  for (const name of offered) if (subprotocols.includes(name)) return name
  return undefined
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
