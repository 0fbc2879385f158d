// Lets HTTP upgrades at /ws in as sessions, or refuses them with a reason. Attached to the HTTP server that also serves
// values.
import { type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Problem, problemText } from '@keycast/protocol'
import { type Containment, createOnceAMinute, type Log, noContainment } from '@keycast/service'
import type { Identify } from '../access/identify.ts'
import type { Revocations } from '../access/revocations/revocations.ts'
import { tokenRefused } from '../access/tokens/tokens.ts'
import { type Counts, countOne } from '../counts.ts'
import { INVALID_TOKEN } from '../doors/http/problems.ts'
import { chooseSubprotocol, subprotocols } from '../encodings/index.ts'
import type { Account, Accounts } from './accounts.ts'
import { readOrigins } from './allowed-origins.ts'

/** When to come back to a gateway that is full, or with too many sessions, in seconds: others may have room at once. */
const RETRY_AFTER_SECONDS = 5

/** Of an origin that is repeated in an answer and in the log: a client may send kilobytes. */
const ORIGIN_CHARACTERS_MAX = 200

interface Deps {
  accept: ReturnType<typeof import('../transport/accept.ts').createAccept>
  open: ReturnType<typeof import('./open.ts').createOpen>
  identify: Pick<Identify, 'peerOf' | 'verifyRequest'>
  revocations: Pick<Revocations, 'isRevoked'>
  accounts: Pick<Accounts, 'of' | 'hasRoom'>
  sessionCount: () => number
  isDraining: () => boolean
  sessionsMax: number
  origins: string
  containment?: Pick<Containment, 'guard'>
  counts: Counts
  log: Pick<Log, 'warn'> | undefined
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createUpgrades({
  accept,
  open,
  identify,
  revocations,
  accounts,
  sessionCount,
  isDraining,
  sessionsMax,
  origins,
  containment = noContainment,
  counts,
  log,
  now,
}: Deps) {
  const isAllowed = readOrigins(origins)
  const isLogDue = createOnceAMinute(now)

  /** @returns once it was let in or turned away */
  function upgrade(httpServer: Server, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> | void {
    // First of all: an error without a listener ends the process.
    socket.on('error', destroy)
    const refusal = refusalOf(request)
    if (refusal) return turnAway(socket, refusal)
    const peer = identify.peerOf(request)
    const verifying = identify.verifyRequest(request, peer.address)
    if (!verifying) return letIn(httpServer, request, socket, head, { peer })
    return verifying.then(result => {
      // The client left before its token was checked: a handshake would be written to nobody.
      if (socket.destroyed || !socket.writable || socket.readableEnded) return void socket.destroy()
      if ('refused' in result) return turnAway(socket, refusalForToken(result.refused.problem))
      if (revocations.isRevoked(result.verified)) return turnAway(socket, refusalForToken(tokenRefused))
      // Others may have taken the room meanwhile, or the gateway may be stopping.
      const later = refusalOf(request)
      if (later) return turnAway(socket, later)
      letIn(httpServer, request, socket, head, { peer, verified: result.verified })
    })
  }

  function letIn(
    httpServer: Server,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    from: Parameters<typeof open>[1],
  ) {
    const account = accounts.of(from.verified?.user, from.peer)
    if (account && !accounts.hasRoom(account)) return turnAway(socket, tooMany(account, from.verified?.user))
    accept(request, socket, head, transport => {
      socket.off('error', destroy)
      httpServer.emit('webSocket', socket)
      open(transport, from)
    })
  }

  function turnAway(socket: Duplex, refusal: Refusal) {
    const { reason, remedy } = refusal
    countOne(counts.refused, reason)
    // One a minute of each reason, not of each origin: a client chooses what it sends.
    if (remedy && isLogDue(reason)) log?.warn({ reason, ...remedy.about }, remedy.message)
    refuse(socket, refusal)
  }

  function attach(httpServer: Server) {
    const take = containment.guard(
      'upgrade',
      (request: IncomingMessage, socket: Duplex, head: Buffer) =>
        isOrdinary(request)
          ? answerOrdinarily(httpServer, request, socket as Socket)
          : upgrade(httpServer, request, socket, head),
      (_, socket) => void socket.destroy(),
    )
    httpServer.on('upgrade', take)
  }

  function refusalOf({ url = '', headers }: IncomingMessage): Refusal | undefined {
    if (url.split('?', 1)[0] !== '/ws') return { status: 404, reason: 'path', message: 'WebSockets are served at /ws' }
    if (isDraining()) return unavailable('draining', 'this gateway is being stopped')
    if (sessionCount() >= sessionsMax) return full(sessionsMax)
    // Only browsers send an origin, and no page can change it. A program can, so a request without one is let in.
    if (headers.origin !== undefined && !isAllowed(headers.origin)) {
      return wrongOrigin(headers.origin)
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
 * `challenge`: the scheme that is asked for (RFC 9110 section 11.6.1); `remedy`: for the log, where an operator's
 * setting would let the client in.
 */
interface Refusal {
  status: number
  reason: string
  message: string
  retryAfterSeconds?: number
  challenge?: string
  remedy?: { about: object; message: string }
}

const unavailable = (reason: string, message: string): Refusal => ({
  status: 503,
  reason,
  message,
  retryAfterSeconds: RETRY_AFTER_SECONDS,
})

function wrongOrigin(origin: string): Refusal {
  const shown = origin.slice(0, ORIGIN_CHARACTERS_MAX)
  return {
    status: 403,
    reason: 'origin',
    message: `pages of ${shown} may not connect: GATEWAY_ORIGINS does not name this origin`,
    remedy: {
      about: { origin: shown },
      message: 'a page of another origin was refused: if it is yours, add its origin to GATEWAY_ORIGINS',
    },
  }
}

function full(sessionsMax: number): Refusal {
  return {
    ...unavailable('full', 'this gateway is full'),
    remedy: {
      about: { sessionsMax },
      message: 'a connection was refused, because this gateway is full: add a gateway, or raise GATEWAY_SESSIONS_MAX',
    },
  }
}

/** @param account that has no room */
function tooMany({ name, sessionsMax }: Account, user: string | undefined): Refusal {
  const [whose, setting, otherwise] =
    user === undefined
      ? [
          'address',
          'GATEWAY_SESSIONS_PER_ADDRESS_MAX',
          ', or name the proxy at this address in GATEWAY_TRUSTED_PROXIES',
        ]
      : ['user', 'GATEWAY_SESSIONS_PER_USER_MAX', '']
  return {
    status: 429,
    reason: 'account',
    message: `this ${whose} has ${sessionsMax} sessions at this gateway, and ${setting} allows no more`,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    remedy: {
      about: { account: name, sessionsMax },
      message: `a connection was refused, because its ${whose} has too many: raise ${setting}${otherwise}`,
    },
  }
}

function refusalForToken(problem: Problem): Refusal {
  const { retryAfterMs } = problem
  const message = problemText(problem)
  if (retryAfterMs === undefined) return { status: 401, reason: 'token', message, challenge: INVALID_TOKEN }
  return { status: 503, reason: 'token', message, retryAfterSeconds: Math.ceil(retryAfterMs / 1_000) }
}

function refuse(socket: Duplex, { status, message, retryAfterSeconds, challenge }: Refusal) {
  const body = `${message}\n`
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(challenge ? [`WWW-Authenticate: ${challenge}`] : []),
    ...(retryAfterSeconds ? [`Retry-After: ${retryAfterSeconds}`] : []),
  ]
  socket.once('finish', destroy)
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

function destroy(this: Duplex) {
  this.destroy()
}
