// The internal HTTP listener: metrics, health and whatever the service adds. Never behind the public proxy.
import Fastify from 'fastify'

/** @typedef {ReturnType<typeof createInternalServer>} InternalServer */

/**
 * `/health/live` answers as long as the event loop turns: restart what does not. `/health/ready` says whether traffic
 * should come here: 503 with the reason where not.
 *
 * @param {object} options
 * @param {string} options.host
 * @param {number} options.port 0 for any free one
 * @param {{ registry: import('prom-client').Registry }} options.metrics
 * @param {() => string | undefined} options.ready why the service is not ready; `undefined` when it is
 * @param {import('./log.js').Log} options.log
 */
export function createInternalServer({ host, port, metrics, ready, log }) {
  // Scrapers keep connections open: without forcing, close() would wait for them.
  const app = Fastify({ forceCloseConnections: true })

  app.setErrorHandler((/** @type {import('fastify').FastifyError} */ error, request, reply) => {
    const status = error.statusCode ?? 500
    if (status >= 500) log.error({ err: error, path: request.url }, 'an internal request failed')
    return reply.code(status).send({ error: status >= 500 ? 'internal error, see the log' : error.message })
  })
  app.get('/metrics', async (_, reply) =>
    reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  )
  app.get('/health/live', async () => ({ status: 'live' }))
  app.get('/health/ready', async (_, reply) => {
    const reason = ready()
    return reason === undefined ? { status: 'ready' } : reply.code(503).send({ status: 'not ready', reason })
  })

  return {
    /** Routes are added here, before {@link listen}. */
    app,

    /** @returns {Promise<number>} the port listened on */
    async listen() {
      await app.listen({ host, port })
      return /** @type {import('node:net').AddressInfo} */ (app.server.address()).port
    },

    async close() {
      await app.close()
    },
  }
}
