// POST /v1/stream/send: what the client of a stream says, under the name that its stream got.
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { EventStream } from '../../transport/event-stream.ts'
import { type HttpProblem, sendProblem } from '../http/problems.ts'

export interface SendDeps {
  readonly streams: { get(name: string): Pick<EventStream, 'awaits' | 'hear' | 'pong' | 'isOpen'> | undefined }
  readonly messageBytesMax: number
}

/** With a stream's name: in its own head, and in each request beside it. */
export const NAME_HEADER = 'keycast-stream'

const UNKNOWN_STREAM: HttpProblem = {
  code: 'unknown_stream',
  message: 'no such stream here: it has ended, or the header Keycast-Stream does not name it; open another',
}

const tooLong = (bytesMax: number): HttpProblem => ({
  code: 'bad_request',
  message: `a request takes messages of ${bytesMax} bytes together, by GATEWAY_MESSAGE_BYTES_MAX: send fewer in each`,
})

/** @param app that takes any body */
export function addSend(app: FastifyInstance, { streams, messageBytesMax }: SendDeps) {
  function streamOf({ headers }: FastifyRequest) {
    const stream = streams.get(String(headers[NAME_HEADER]))
    // One that was ended is there until its client has read why.
    return stream?.isOpen() ? stream : undefined
  }

  // Before any of the body is read: a stranger's is not, and a session's counts as a message that is unfinished.
  const onRequest: onRequestHookHandler = (request, reply, done) => {
    const stream = streamOf(request)
    if (!stream) return void sendProblem(reply, UNKNOWN_STREAM)
    const bytes = Number(request.headers['content-length'] ?? messageBytesMax)
    // Fastify would close the connection: a proxy that still sends sees it break, and its client no reason.
    if (bytes > messageBytesMax) return void sendProblem(reply, tooLong(messageBytesMax), 413)
    reply.raw.once(
      'close',
      stream.awaits(bytes, () => request.raw.destroy()),
    )
    done()
  }

  app.post('/v1/stream/send', { bodyLimit: messageBytesMax, onRequest }, (request, reply) => {
    // It may have ended meanwhile.
    const stream = streamOf(request)
    if (!stream) return sendProblem(reply, UNKNOWN_STREAM)
    const body = request.body as Buffer | undefined
    if (!body?.length) stream.pong()
    else hearAll(stream, body)
    return reply.code(204).send()
  })
}

const LINE_FEED = 10

function hearAll(stream: Pick<EventStream, 'hear' | 'pong' | 'isOpen'>, body: Buffer) {
  for (const message of linesOf(body)) {
    // It was closed for what it said.
    if (!stream.isOpen()) return
    if (message.length === 0) stream.pong()
    else stream.hear(message)
  }
}

/** The messages of a body: one line each. */
function* linesOf(body: Buffer) {
  for (let at = 0; at < body.length; ) {
    const found = body.indexOf(LINE_FEED, at)
    const end = found < 0 ? body.length : found
    yield body.subarray(at, end)
    at = end + 1
  }
}
