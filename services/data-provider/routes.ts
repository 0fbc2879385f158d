// The routes of the simulated backend: its content, its counters, and the faults that a test can set.
import { setTimeout as delay } from 'node:timers/promises'
import type { MetricMakers, Problem } from '@keycast/service'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isNotModified } from './conditional.ts'
import { DOCUMENT_BYTES_MAX, DOCUMENT_BYTES_MIN } from './documents.ts'
import type { Fault } from './faults.ts'

type ContentRequest = FastifyRequest<{ Params: { '*': string }; Querystring: Record<string, unknown> }>

/** Ids that have content: segments of unreserved characters (RFC 3986 section 2.3), which need no escaping. */
const idGrammar = /^(?=.{1,255}$)[A-Za-z0-9._~-]+(\/[A-Za-z0-9._~-]+)*$/

const kinds = ['conversations', 'text', 'binary'] as const

/** JSON that was cut off in the middle of a string. */
const GARBAGE = '{"revision": 1, "messages": [{"text": "and then'

interface Deps {
  documents: ReturnType<typeof import('./documents.ts').createDocuments>
  faults: ReturnType<typeof import('./faults.ts').createFaults>
  stats: ReturnType<typeof import('./stats.ts').createStats>
  metrics: MetricMakers
  /** Length of a document, unless the request asks for another. */
  documentBytes: number
  now: () => number
  monotonicNs: () => bigint
}

export function addRoutes(
  app: FastifyInstance,
  { documents, faults, stats, metrics, documentBytes, now, monotonicNs }: Deps,
) {
  const answered = metrics.count<string>('requests_total', 'Requests for content that were answered.', {
    route: kinds,
    status: ['200', '304'],
  })
  metrics.read('requests_in_flight', 'Requests for content under way, hanging ones included.', stats.concurrency)

  for (const kind of kinds) {
    addContent(kind, (request, reply, id) => {
      const bytes = readBytes(request.query.bytes, documentBytes)
      if (bytes === undefined) {
        return {
          status: 400,
          body: problem('bad_request', `bytes must be ${DOCUMENT_BYTES_MIN} to ${DOCUMENT_BYTES_MAX}`),
        }
      }
      const document = documents.read(kind, id, bytes, now())
      reply.headers({
        etag: document.etag,
        'last-modified': new Date(document.changedAtMs).toUTCString(),
        // Without it, no cache could keep an answer to a request with Authorization (RFC 9111 section 3.5). No max-age: how
        // long to keep it is the namespace's business.
        'cache-control': 'public',
      })
      if (isNotModified(request.headers, document)) return { status: 304 }
      return { status: 200, type: document.contentType, body: document.content() }
    })
  }

  // The time, to measure how long a value is on its way: `ns` is comparable between processes of one host.
  addContent('ticks', (_, reply, id) => {
    reply.header('cache-control', 'no-store')
    return { status: 200, body: { ns: String(monotonicNs()), at: new Date(now()).toISOString(), id } }
  })

  app.get('/stats', async request => stats.read({ log: (request.query as { log?: string }).log === '1' }))
  app.post('/stats/reset', async (_, reply) => {
    stats.reset()
    return reply.code(204).send()
  })
  app.get('/faults', async () => faults.current())
  app.post('/faults', async (request, reply) => {
    const why = faults.change(request.body)
    return why === undefined ? faults.current() : reply.code(400).send(problem('bad_request', why))
  })

  /** Adds a route that is counted and that fails as the faults say. */
  function addContent(
    route: string,
    answer: (
      request: ContentRequest,
      reply: FastifyReply,
      id: string,
    ) => { status: number; type?: string; body?: Buffer | object },
  ) {
    app.get(`/${route}/*`, async (request: ContentRequest, reply) => {
      const id = request.params['*']
      if (!idGrammar.test(id))
        return reply
          .code(404)
          .send(problem('no_such_id', 'an id is segments of letters, digits and . _ ~ -, separated by /'))
      const visit = stats.arrived(route, `/${route}/${id}`)
      reply.raw.once('close', visit.ended)

      const { delayMs, fault } = faults.draw()
      if (delayMs > 0) await delay(delayMs)
      // The client is gone, or is to hang: the connection stays open until one side ends it.
      if (fault === 'hang' || reply.raw.destroyed) return reply.hijack()

      const { status, type = 'application/json; charset=utf-8', body } = faulty(fault) ?? answer(request, reply, id)
      visit.answered(status === 304 ? 'notModified' : status === 200 && fault === 'none' ? 'full' : 'failed', status)
      answered(route, String(status))
      reply.code(status)
      return status === 304 ? reply.send() : reply.type(type).send(body)
    })
  }
}

function problem(code: string, message: string): Problem {
  return { code, message }
}

function faulty(fault: Fault) {
  if (fault === 'error')
    return { status: 500, type: undefined, body: problem('fault', 'this failure was asked for (errorRate)') }
  if (fault === 'garbage') return { status: 200, type: undefined, body: Buffer.from(GARBAGE) }
  return undefined
}

function readBytes(given: unknown, standard: number): number | undefined {
  if (given === undefined) return standard
  const bytes = typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN
  return bytes >= DOCUMENT_BYTES_MIN && bytes <= DOCUMENT_BYTES_MAX ? bytes : undefined
}
