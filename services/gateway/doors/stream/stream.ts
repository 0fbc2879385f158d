// GET /v1/stream: a session over server-sent events, for curl, for EventSource, and where WebSockets are blocked. Its client
// asks for the keys in the URL (query.ts), and for all else by POST /v1/stream/send (send.ts).
import type { OutgoingHttpHeaders } from 'node:http'
import { addScope, type World } from '@keycast/service'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Verified } from '../../access/tokens/tokens.ts'
import type { Admission } from '../../sessions/admission.ts'
import { createEventStream, type EventStream } from '../../transport/event-stream.ts'
import type { Transport } from '../../transport/transport.ts'
import { securityHeaders } from '../http/admit.ts'
import { type HttpProblem, sendProblem } from '../http/problems.ts'
import { createCursor, type readCursor } from './cursor.ts'
import { readQuery } from './query.ts'
import { addSend, NAME_HEADER, type SendDeps } from './send.ts'
import { addTicket, type TicketDeps } from './ticket-http.ts'

export interface StreamDeps extends SendDeps, TicketDeps {
  readonly admission: Pick<Admission, 'admit' | 'refused' | 'refusalOfPage'>
  /** Those that are open, by name. */
  readonly streams: Map<string, EventStream>
  readonly open: (transport: Transport, from: { peer: Arrival['peer']; verified?: Verified }) => void
  readonly world: Pick<World, 'random' | 'randomBytes'>
}

type Arrival = Exclude<Awaited<ReturnType<Admission['admit']>>, { reason: string }>

/** Whoever knows a stream's name may speak for its client: 128 bits, and in a header, for URLs are logged. */
const NAME_BYTES = 16

export function addStream(app: FastifyInstance, deps: StreamDeps) {
  const { admission, tickets, streams, open, world } = deps

  // Fastify would answer HEAD with a stream.
  app.get('/v1/stream', { exposeHeadRoute: false }, async (request, reply) => {
    const asked = readQuery(request)
    if ('problem' in asked) return sendProblem(reply, asked.problem)
    const { keys, positions, ticket } = asked
    const shown = ticket === undefined ? undefined : tickets.take(ticket)
    if (ticket !== undefined && !shown) return sendProblem(reply, UNKNOWN_TICKET)
    const arrival = await admission.admit(request.raw, shown)
    // The client left before its token was checked; or another request of its connection has no answer yet.
    if (!reply.raw.socket?.writable) return hangUp(request, reply)
    if ('reason' in arrival) {
      admission.refused(arrival)
      return sendProblem(reply, arrival)
    }
    reply.hijack()
    const name = world.randomBytes(NAME_BYTES).toString('base64url')
    const stream = createEventStream({
      response: reply.raw,
      headers: { ...(reply.getHeaders() as OutgoingHttpHeaders), ...securityHeaders, [NAME_HEADER]: name },
      idAfter: createCursor(keys, positions),
      world,
    })
    const { socket } = request.raw
    streams.set(name, stream)
    socket.once('close', () => streams.delete(name))
    app.server.emit('session', socket)
    open(stream, arrival)
    if (keys.length > 0) stream.hear(Buffer.from(JSON.stringify(subscribeTo(keys, positions))))
  })

  // In a scope of its own: nothing else takes a body, of whatever type.
  addScope(app, 'stream', async scope => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_, body, done) => done(null, body))
    addSend(scope, deps)
    addTicket(scope, deps)
  })
}

const UNKNOWN_TICKET: HttpProblem = {
  code: 'unknown_ticket',
  message: 'no such ticket here: it opens one stream, within 30 s; get another by POST /v1/ticket',
}

function subscribeTo(keys: string[], positions: ReturnType<typeof readCursor> & object) {
  const entries = keys.map(key => {
    const after = positions.get(key)
    return after ? { key, after } : key
  })
  return { type: 'subscribe', keys: entries }
}

function hangUp({ raw: { socket } }: FastifyRequest, reply: FastifyReply) {
  reply.hijack()
  socket.destroy()
}
