// Lets HTTP upgrades at /ws in as sessions, or refuses them with a reason. Attached to the HTTP server that also serves
// values.
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Containment, http, type World } from '@keycast/service'
import { INVALID_TOKEN, statusFor } from '../doors/http/problems.ts'
import { chooseSubprotocol, subprotocols } from '../encodings/index.ts'
import type { Transport } from '../transport/transport.ts'
import type { Admission, Arrival, Refusal } from './admission.ts'

/** A client that is no session has this long to read why. */
const REFUSED_MS = 5_000

interface Deps {
  accept: (request: IncomingMessage, socket: Duplex, head: Buffer, opened: (transport: Transport) => void) => void
  open: (transport: Transport, from: Arrival) => void
  admission: Pick<Admission, 'admit' | 'refused'>
  containment: Pick<Containment, 'guard'>
  after: World['after']
}

export function createUpgrades({ accept, open, admission, containment, after }: Deps) {
  /** @returns once it was let in or turned away */
  function upgrade(httpServer: Server, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> | void {
    const answer = refusalOf(request) ?? admission.admit(request)
    if (!(answer instanceof Promise)) return letIn(httpServer, request, socket, head, answer)
    return answer.then(result => {
      // The client left before its token was checked: a handshake would be written to nobody.
      if (socket.destroyed || !socket.writable || socket.readableEnded) return void socket.destroy()
      letIn(httpServer, request, socket, head, result)
    })
  }

  function letIn(
    httpServer: Server,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    answer: Arrival | Refusal,
  ) {
    if ('reason' in answer) {
      admission.refused(answer)
      refuse(socket, answer)
      return cutLater(socket)
    }
    let isMalformed = true
    accept(request, socket, head, transport => {
      isMalformed = false
      socket.off('error', destroy)
      httpServer.emit('session', socket)
      open(transport, answer)
    })
    if (isMalformed) cutLater(socket)
  }

  /** Node has no time limit for it any more, and the refusal leaves only as far as the client reads. */
  function cutLater(socket: Duplex) {
    socket.once(
      'close',
      after(REFUSED_MS, () => socket.destroy()),
    )
  }

  function attach(httpServer: Server) {
    const take = containment.guard(
      'upgrade',
      (request: IncomingMessage, socket: Duplex, head: Buffer) => {
        // First of all: an error without a listener ends the process.
        socket.on('error', destroy)
        // It came before requests of its connection were answered: connections.ts.
        if (socket.destroyed) return undefined
        return isOrdinary(request)
          ? answerOrdinarily(httpServer, request, socket as Socket)
          : upgrade(httpServer, request, socket, head)
      },
      (_, socket) => void socket.destroy(),
    )
    httpServer.on('upgrade', take)
  }

  return { attach }
}

/** Why an upgrade is refused that is none to begin with. */
function refusalOf({ url = '', headers }: IncomingMessage): Refusal | undefined {
  if (url.split('?', 1)[0] !== '/ws') {
    return { code: 'unknown_path', reason: 'path', message: 'WebSockets are served at /ws' }
  }
  const offered = headers['sec-websocket-protocol']?.split(',').map(name => name.trim())
  if (offered && !chooseSubprotocol(offered)) {
    const message = `offer ${subprotocols.join(' or ')}, or no subprotocol`
    return { code: 'bad_request', reason: 'subprotocol', message }
  }
  return undefined
}

/**
 * Whether a request offers only a protocol other than WebSocket: most often `h2c`, as Java's HTTP client and `curl
 * --http2` do. A server may ignore the offer (RFC 9110 section 7.8). Node takes it for an upgrade all the same, and
 * then reads no body; but no route here takes one.
 */
function isOrdinary({ method, headers }: IncomingMessage) {
  return (method === 'GET' || method === 'HEAD') && !/\bwebsocket\b/i.test(headers.upgrade ?? '')
}

/**
 * Has a request answered that Node has detached from its server as an upgrade. The connection ends with it: nothing reads
 * it any more.
 */
function answerOrdinarily(httpServer: Server, request: IncomingMessage, socket: Socket) {
  const response = new http.ServerResponse(request)
  response.shouldKeepAlive = false
  // Stays assigned: the end of the socket closes the response, and with it ends what is held until the client has read it.
  response.assignSocket(socket)
  response.once('finish', () => socket.destroySoon())
  httpServer.emit('request', request, response)
}

function refuse(socket: Duplex, refusal: Refusal) {
  const { message, retryAfterMs } = refusal
  const status = statusFor(refusal)
  const body = `${message}\n`
  const head = [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    // RFC 9110 section 11.6.1: the scheme that is asked for.
    ...(status === 401 ? [`WWW-Authenticate: ${INVALID_TOKEN}`] : []),
    ...(retryAfterMs === undefined ? [] : [`Retry-After: ${Math.ceil(retryAfterMs / 1_000)}`]),
  ]
  socket.once('finish', destroy)
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

function destroy(this: Duplex) {
  this.destroy()
}
