// Answers the errors of Fastify and of handlers, on every HTTP listener of Keycast.
import { excerpt } from '@keycast/protocol'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Containment } from './containment.ts'

/** The body of every answer that is no success. `code` is for programs, `message` for people. */
export interface Problem {
  code: string
  message: string
}

/**
 * The codes are `bad_request` and `internal_error`. An error that a handler threw is in the log alone: it may hold a
 * secret. It ends its own request.
 */
export function answerErrors({
  caught,
}: {
  caught: Containment['caught']
}): (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => unknown {
  return (error, request, reply) => {
    const status = error.statusCode ?? 500
    if (status < 500) {
      // Fastify's own words name neither the header nor the type that is read.
      const message = status === 415 ? 'send the body with the header "content-type: application/json"' : error.message
      return sendError(reply, status, { code: 'bad_request', message })
    }
    caught('request', error, { path: excerpt(request.url) })
    return sendError(reply, status, { code: 'internal_error', message: 'internal error: the log says why' })
  }
}

export function sendError(reply: FastifyReply, status: number, { code, message }: Problem) {
  return reply.code(status).header('cache-control', 'no-store').send({ code, message })
}
