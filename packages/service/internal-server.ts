// The internal HTTP listener: metrics, health and the routes a service adds. The public proxy must never lead to it.
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import type { Registry } from 'prom-client'
import type { Containment } from './containment.ts'
import { noSchemas } from './fastify-start.ts'
import { answerErrors, sendError } from './http-errors.ts'

/** A request has this long to be there: Fastify sets none, and a caller that sends no more would keep its connection for ever. */
const REQUEST_MS = 60_000

/** Of a part of a path, such as a key or a user: no path is longer. Fastify finds no route for one of over 100 characters. */
const NAME_CHARACTERS_MAX = 16 * 1_024

interface Options {
  host: string
  /** 0 for any free one. */
  port: number
  metrics: { registry: Registry }
  /** The reason why the service is not ready; `undefined` when it is. */
  ready: () => string | undefined
  /** What is wrong though it is ready. */
  problems?: () => string[]
  containment: { caught: Containment['caught'] }
}

/**
 * `/health/live` answers 200 while the event loop turns: a supervisor restarts a process that is silent there.
 * `/health/ready` answers 200 while traffic may come here, else 503 with the reason. Its `status` is `degraded` where
 * something is wrong that no other instance would do better.
 */
export function createInternalServer({ host, port, metrics, ready, problems = () => [], containment }: Options) {
  // Without forcing, close() would wait for scrapers, which keep their connections open.
  const app = Fastify({
    forceCloseConnections: true,
    schemaController: noSchemas,
    requestTimeout: REQUEST_MS,
    routerOptions: { maxParamLength: NAME_CHARACTERS_MAX },
    // Broken percent-encoding comes here before any route. Fastify's own answer repeats the whole path.
    frameworkErrors: (_error, _request, reply) =>
      sendError(reply, 400, {
        code: 'bad_request',
        message: 'the path cannot be read: its percent-encoding is broken',
      }),
  })

  app.setErrorHandler(answerErrors(containment))
  app.setNotFoundHandler((request, reply) =>
    sendError(reply, 404, { code: 'unknown_path', message: `nothing answers ${request.method} at this path` }),
  )
  app.get('/metrics', async (_, reply) =>
    reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  )
  app.get('/health/live', async () => ({ status: 'live' }))
  app.get('/health/ready', async (_, reply) => {
    const reason = ready()
    if (reason !== undefined) return sendError(reply, 503, { code: 'not_ready', message: reason })
    const wrong = problems()
    return wrong.length > 0 ? { status: 'degraded', problems: wrong } : { status: 'ready' }
  })

  return {
    /** A service adds its routes here, before {@link listen}. */
    app,

    /** @returns the port listened on */
    async listen(): Promise<number> {
      await app.listen({ host, port })
      return (app.server.address() as AddressInfo).port
    },

    async close() {
      await app.close()
    },
  }
}
