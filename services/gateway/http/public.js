// The HTTP side of the port clients connect to: the page and the values. Upgrades at /ws are the gateway's own.
import { errorCodes } from '@keycast/protocol'
import Fastify from 'fastify'
import { addPage } from './page.js'
import { sendProblem } from './problems.js'
import { addValues } from './values.js'

/**
 * How long a request may take to come in. Until it has, its connection counts as no session, whoever is behind it: a proxy
 * has the whole of it before it asks.
 */
const REQUEST_TIMEOUT_MS = 10_000

/**
 * How long a connection may be idle between requests. Above what the proxies before it keep one for (nginx's here 4 s, load
 * balancers often 60 s): were the gateway the first to close, requests would meet a closed connection.
 */
const KEEP_ALIVE_MS = 72_000

/** Nothing here takes a body. */
const BODY_BYTES_MAX = 1_024

/**
 * @param {object} deps
 * @param {Pick<import('../keys/values.js').Values, 'refusal' | 'fresh' | 'want'>} deps.values
 * @param {import('./values.js').HttpCounts} deps.counts
 * @param {import('@keycast/service').Log} deps.log
 */
export function createPublicApp({ values, counts, log }) {
  const app = Fastify({
    // Browsers and proxies keep connections open: without forcing, close() would wait for them.
    forceCloseConnections: true,
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // A path whose percent-encoding is broken comes here before any route: whatever it was to name, it is no key.
    frameworkErrors: (_error, _request, reply) => sendProblem(reply, { code: 'bad_key', message: errorCodes.bad_key }),
  })

  app.setErrorHandler((/** @type {import('fastify').FastifyError} */ error, request, reply) => {
    const status = error.statusCode ?? 500
    if (status >= 500) log.error({ err: error, path: request.url }, 'a request failed')
    return reply.code(status).send({ message: status >= 500 ? 'internal error' : error.message })
  })
  app.setNotFoundHandler((_, reply) =>
    reply.code(404).send({ message: '/ is the page, /v1/values/{key} a value, /ws the WebSocket' }),
  )
  addPage(app)
  addValues(app, { values, counts })
  return app
}
