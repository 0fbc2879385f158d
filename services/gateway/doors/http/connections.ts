// Limits the connections that are no sessions, the requests on each, and the time in which a client must read a response.
// Otherwise clients that stop half-way would hold them for ever.
import type { RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { World } from '@keycast/service'
import type { FastifyInstance } from 'fastify'
import type { Peer } from '../../access/client-address.ts'

/**
 * A client must read a response in this time: the longest value, 4 MiB by default, at 35 KB a second. A proxy reads at
 * once.
 */
const RESPONSE_MS_MAX = 120_000

/** Clients at one address get this part of all connections: so it takes four addresses to shut out the others. */
const SHARE_OF_ADDRESS = 1 / 4

interface Options {
  connectionsMax: number
  /** One that names no client is a proxy for many, and its connections count for nobody. */
  peerOf: (connection: { socket: Socket }) => Peer
  /** `client` is given where it has too many. */
  onRefused?: (client: string | undefined, connectionsMax: number) => void
}

/**
 * Past the limits new connections are cut: of one address, and in all. A connection counts until it closes or becomes a
 * session (the server's event `session`).
 */
export function limitConnections(server: Server, { connectionsMax, peerOf, onRefused }: Options) {
  const perClientMax = Math.ceil(connectionsMax * SHARE_OF_ADDRESS)
  /** Of each open connection, the client. */
  const open = new Map<unknown, string | undefined>()
  const counts = new Map<string, number>()

  function release(socket: unknown) {
    const client = open.get(socket)
    if (!open.delete(socket) || client === undefined) return
    const left = (counts.get(client) ?? 0) - 1
    if (left > 0) counts.set(client, left)
    else counts.delete(client)
  }
  /** One shared function, which a session's socket no longer has: sessions are many, and live long. */
  function closed(this: unknown) {
    release(this)
  }
  server.on('connection', socket => {
    const { address, isNamed } = peerOf({ socket })
    const client = isNamed ? address : undefined
    const count = client === undefined ? 0 : (counts.get(client) ?? 0)
    if (count >= perClientMax || open.size >= connectionsMax) {
      socket.destroy()
      if (count >= perClientMax) onRefused?.(client, perClientMax)
      else onRefused?.(undefined, connectionsMax)
      return
    }
    open.set(socket, client)
    if (client !== undefined) counts.set(client, count + 1)
    socket.on('close', closed)
  })
  server.on('session', socket => {
    release(socket)
    socket.off('close', closed)
  })
}

/**
 * Cuts a client that does not read its response in time. Node has no such time-out: its own end with the request, and
 * start again with an idle connection.
 */
export function limitResponses(app: FastifyInstance, after: World['after'], responseMsMax: number = RESPONSE_MS_MAX) {
  app.addHook('onSend', (request, reply, _, done) => {
    // Of a client that has left already no event would take the timer back.
    if (!reply.raw.destroyed) {
      reply.raw.once(
        'close',
        after(responseMsMax, () => request.raw.socket.destroy()),
      )
    }
    done()
  })
}

/** A gateway that stops waits this long for answers: those to most requests are there at once. */
const ANSWERS_MS_MAX = 2_000

/**
 * A gateway that stops takes no new connections. Of those there are each closes with its answer, or a proxy would go on to
 * ask on it until it is cut.
 *
 * @returns resolves once all requests are answered, or soon: what follows cuts their connections
 */
export function leaveWithAnswers(app: FastifyInstance, after: World['after']): () => Promise<void> {
  let unanswered = 0
  let isAnswered = () => {}
  app.addHook('onRequest', (_, reply, done) => {
    unanswered++
    reply.raw.once('close', () => {
      unanswered--
      if (unanswered === 0) isAnswered()
    })
    done()
  })
  app.addHook('onSend', (_, reply, __, done) => {
    if (!app.server.listening) reply.header('connection', 'close')
    done()
  })
  return () =>
    new Promise(resolve => {
      const cancel = after(ANSWERS_MS_MAX, resolve)
      isAnswered = () => {
        cancel()
        resolve()
      }
      if (unanswered === 0) isAnswered()
    })
}

/** Nothing that asks a gateway sends more before the first answer: browsers and proxies wait for each. */
const REQUESTS_MAX = 8

/**
 * Cuts a connection on which more comes while requests of it have no answer yet. A thousand requests fit into one read,
 * and each would keep its answer until those before it are read, or for ever behind a stream. An upgrade would have the
 * connection used by two.
 *
 * @param server whose only listener of requests is there already. It must not answer those without `Host` by itself: nobody
 *   would count them
 */
export function limitRequests(server: Server) {
  /** Of each connection, the answers that are not over. */
  const unanswered = new WeakMap<Duplex, Set<ServerResponse>>()
  const sessions = new WeakSet<Duplex>()
  const [handle] = server.listeners('request') as RequestListener[]

  const take: RequestListener = (request, response) => {
    const { socket } = request
    const responses = unanswered.get(socket) ?? new Set()
    if (sessions.has(socket) || responses.size >= REQUESTS_MAX) return void socket.destroy()
    unanswered.set(socket, responses.add(response))
    response.once('close', () => responses.delete(response))
    handle(request, response)
  }
  // Node would answer the second kind by itself, with 417. It need not be refused (RFC 9110 section 10.1.1).
  server.off('request', handle).on('request', take).on('checkExpectation', take)
  server.on('session', socket => sessions.add(socket))
  server.on('upgrade', (_, socket) => {
    const responses = unanswered.get(socket)
    if (!sessions.has(socket) && !responses?.size) return
    // Node no longer ends those whose turn has not come: what is held for them would be for ever.
    for (const response of responses ?? []) response.destroy()
    socket.destroy()
  })
}
