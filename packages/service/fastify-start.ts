// What spares Fastify work at every start.
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'

/** For a server without schemas in its routes. Fastify's own compilers of them load Ajv, 120 files. */
export const noSchemas = { compilersFactory: { buildValidator: refuse, buildSerializer: refuse } }

function refuse(): never {
  throw new Error('a route has a schema, which this server has no compiler for')
}

/** Registers routes with parsers of their own. Where they have no name, Fastify looks for one among all modules loaded. */
export function addScope(app: FastifyInstance, name: string, scope: FastifyPluginAsync) {
  app.register(Object.assign(scope, { [Symbol.for('fastify.display-name')]: name }))
}
