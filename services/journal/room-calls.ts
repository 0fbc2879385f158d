// `GET /v1/rooms/{key}` of the journal's internal listener: "why did the message not arrive?". It gives the number of
// members and no names: this listener asks for no token.

/**
 * @param {import('fastify').FastifyInstance} app
 * @param {Pick<ReturnType<typeof import('./journal.ts').createJournal>, 'describe'>} journal
 */
export function addRoomCalls(app, { describe }) {
  // As at a gateway: the id may hold `/`.
  app.get('/v1/rooms/*', async (request, reply) => {
    const { '*': key } = /** @type {{ '*': string }} */ (request.params)
    let described
    try {
      described = await describe(key)
    } catch (error) {
      const message = `the log cannot be read: ${/** @type {Error} */ (error).message}`
      return reply.code(503).send({ code: 'journal_unavailable', message })
    }
    if ('problem' in described) return reply.code(404).send({ code: 'unknown_room', message: described.problem })
    return described
  })
}
