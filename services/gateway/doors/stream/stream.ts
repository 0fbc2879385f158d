// GET /v1/stream: a session over server-sent events, for curl, for EventSource, and where WebSockets are blocked. What its
// client asks for beside the keys in the URL comes by POST /v1/stream/send, under the name that the stream got.
import type { OutgoingHttpHeaders } from 'node:http'
import type { World } from '@keycast/service'
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Verified } from '../../access/tokens/tokens.ts'
import type { Admission } from '../../sessions/admission.ts'
import { createEventStream, type EventStream } from '../../transport/event-stream.ts'
import type { Transport } from '../../transport/transport.ts'
import { securityHeaders } from '../http/admit.ts'
import type { Authenticate } from '../http/authenticate.ts'
import { type HttpProblem, sendProblem } from '../http/problems.ts'
import { createCursor, KEYS_MAX, readCursor } from './cursor.ts'
import { TICKET_MS, type Tickets } from './tickets.ts'

export interface StreamDeps {
  readonly admission: Pick<Admission, 'admit' | 'refused'>
  readonly authenticate: Authenticate
  readonly tickets: Tickets
  /** Those that are open, by name. */
  readonly streams: Map<string, EventStream>
  readonly open: (transport: Transport, from: { peer: Arrival['peer']; verified?: Verified }) => void
  readonly messageBytesMax: number
  readonly world: Pick<World, 'random' | 'randomBytes'>
}

type Arrival = Exclude<Awaited<ReturnType<Admission['admit']>>, { reason: string }>

/** Who knows a stream's name may speak for its client: 128 bits, and in a header, for URLs are logged. */
const NAME_BYTES = 16
const NAME_HEADER = 'keycast-stream'

export function addStream(
  app: FastifyInstance,
  { admission, authenticate, tickets, streams, open, messageBytesMax, world }: StreamDeps,
) {
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
      return sendProblem(reply, arrival, arrival.status)
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
  app.register(async scope => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_, body, done) => done(null, body))

    const streamOf = ({ headers }: FastifyRequest) => streams.get(String(headers[NAME_HEADER]))

    // Before any of the body is read: a stranger's is not, and a session's counts as a message that is unfinished.
    const onRequest: onRequestHookHandler = (request, reply, done) => {
      const stream = streamOf(request)
      if (!stream) return void sendProblem(reply, UNKNOWN_STREAM)
      const bytes = Number(request.headers['content-length'] ?? messageBytesMax)
      // Fastify would close the connection: a proxy that still sends sees it break, and its client no reason.
      if (bytes > messageBytesMax) return void sendProblem(reply, tooLong(messageBytesMax), 413)
      stream.awaits(bytes)
      reply.raw.once('close', () => stream.awaits(-bytes))
      done()
    }

    scope.post('/v1/stream/send', { bodyLimit: messageBytesMax, onRequest }, (request, reply) => {
      // It may have ended meanwhile.
      const stream = streamOf(request)
      if (!stream) return sendProblem(reply, UNKNOWN_STREAM)
      for (const message of linesOf(request.body as Buffer | undefined)) stream.hear(message)
      return reply.code(204).send()
    })

    scope.post('/v1/ticket', async (request, reply) => {
      const caller = await authenticate(request.raw)
      if ('problem' in caller) return sendProblem(reply, caller.problem, caller.status)
      caller.leave()
      const problem = caller.revoked()
      if (problem) return sendProblem(reply, problem)
      if (!caller.verified) return sendProblem(reply, NO_TOKEN)
      reply.header('cache-control', 'no-store')
      return reply.send({ ticket: tickets.give(caller.verified), expiresInMs: TICKET_MS })
    })
  })
}

const UNKNOWN_TICKET: HttpProblem = {
  code: 'unknown_ticket',
  message: 'no such ticket here: it opens one stream, within 30 s; get another by POST /v1/ticket',
}

const UNKNOWN_STREAM: HttpProblem = {
  code: 'unknown_stream',
  message: 'no such stream here: it has ended, or the header Keycast-Stream does not name it; open another',
}

const tooLong = (bytesMax: number): HttpProblem => ({
  code: 'bad_request',
  message: `a request takes messages of ${bytesMax} bytes together, by GATEWAY_MESSAGE_BYTES_MAX: send fewer in each`,
})

const NO_TOKEN: HttpProblem = {
  code: 'unauthenticated',
  message:
    'a ticket stands for a token: send one as Authorization: Bearer; without one, open the stream without a ticket',
}

const bad = (message: string): { problem: HttpProblem } => ({ problem: { code: 'bad_request', message } })

/** The last cursor is in the header where a browser comes back by itself, else where the page says it. */
function readQuery({ raw: { url = '' }, headers }: FastifyRequest) {
  const fields = new Map<string, string[]>([
    ['keys', []],
    ['after', []],
    ['ticket', []],
  ])
  for (const [name, texts] of partsOf(url)) {
    const field = fields.get(name)
    if (!field) return bad('the query has "keys", "after" and "ticket", and nothing else')
    field.push(...texts)
  }
  const [keys, [after], [ticket]] = [...fields.values()]
  if (keys.length > KEYS_MAX) {
    const message = `a stream takes ${KEYS_MAX} keys in its URL, not ${keys.length}: open another, or send the others a subscribe`
    return { problem: { code: 'too_many_keys', message } satisfies HttpProblem }
  }
  const cursor = headers['last-event-id'] || after
  const positions = cursor === undefined ? new Map() : readCursor(String(cursor), keys)
  if (!positions) return bad('"after" or Last-Event-ID is no id of an event of these keys, in this order')
  return { keys, positions, ticket }
}

/** The query's names and their texts. A comma stands between two texts; one that is encoded is a part of a text. */
function* partsOf(url: string): Iterable<[name: string, texts: string[]]> {
  const mark = url.indexOf('?')
  if (mark < 0) return
  for (const part of url.slice(mark + 1).split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const texts = equals < 0 ? [] : part.slice(equals + 1).split(',')
    yield [equals < 0 ? part : part.slice(0, equals), texts.filter(text => text !== '').map(decoded)]
  }
}

function decoded(text: string) {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    // No key: the gate says so.
    return text
  }
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

const LINE_FEED = 10

/** The messages of a body: one line each. */
function* linesOf(body: Buffer = Buffer.alloc(0)) {
  for (let at = 0; at < body.length; ) {
    const found = body.indexOf(LINE_FEED, at)
    const end = found < 0 ? body.length : found
    if (end > at) yield body.subarray(at, end)
    at = end + 1
  }
}
