// `GET /v1/rooms/{key}` of the journal's internal listener: "why did the message not arrive?". It gives the number of
// members and no names: this listener asks for no token.
import type { FastifyInstance } from 'fastify'
import type { Journal } from './journal.ts'

export function addRoomCalls(app: FastifyInstance, { describe }: { describe: Journal['describe'] }) {
  // As at a gateway: the id may hold `/`.
  app.get('/v1/rooms/*', async (request, reply) => {
    const { '*': key } = request.params as { '*': string }
    let described
    try {
      described = await describe(key)
    } catch (error) {
      const message = `the log cannot be read: ${(error as Error).message}`
      return reply.code(503).send({ code: 'journal_unavailable', message })
    }
    if ('problem' in described) return reply.code(404).send({ code: 'unknown_room', message: described.problem })
    return described
  })
}
