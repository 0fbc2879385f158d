// Answers the errors of Fastify and of handlers, on every HTTP listener of Keycast.

/**
 * The body of every answer that is no success.
 *
 * @typedef {{ code: string, message: string }} Problem `code` is for programs, `message` for people
 */

/**
 * The codes are `bad_request` and `internal_error`. An error that a handler threw is in the log alone: it may hold a secret.
 *
 * @param {import('./log.ts').Log} log
 * @returns {(error: import('fastify').FastifyError, request: import('fastify').FastifyRequest, reply: import('fastify').FastifyReply) => unknown}
 */
export function answerErrors(log) {
  return (error, request, reply) => {
    const status = error.statusCode ?? 500
    if (status < 500) return sendError(reply, status, { code: 'bad_request', message: error.message })
    log.error({ err: error, path: request.url }, 'a request failed')
    return sendError(reply, status, { code: 'internal_error', message: 'internal error: the log says why' })
  }
}

/** @param {import('fastify').FastifyReply} reply @param {number} status @param {Problem} problem */
export function sendError(reply, status, { code, message }) {
  return reply.code(status).header('cache-control', 'no-store').send({ code, message })
}
