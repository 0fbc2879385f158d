// POST /v1/publish: a backend publishes into a room, under any name.
import type { Published } from '@keycast/backbone'
import { isProblem, type Problem, ProtocolError, readPublishFields } from '@keycast/protocol'
import { addScope } from '@keycast/service'
import type { FastifyInstance } from 'fastify'
import type { Guard } from './http/guard.ts'
import { sendProblem } from './http/problems.ts'

/** The largest message there may be, a key, an id and a name, and what JSON puts around them. */
const BODY_BYTES_MAX = 516 * 1_024

interface Deps {
  guard: Guard
  publishes: {
    fromBackend(message: { key: string; messageId?: string; from: string; data: string }): Promise<Published | Problem>
  }
}

export function addPublish(calls: FastifyInstance, { publishes, guard }: Deps) {
  addScope(calls, 'publish', async scope => {
    // Read as text: the message's data is passed on exactly as it is written.
    scope.removeContentTypeParser('application/json')
    scope.addContentTypeParser('application/json', { parseAs: 'string' }, (_, body, done) => done(null, body))

    scope.post('/v1/publish', { bodyLimit: BODY_BYTES_MAX, ...guard.call('publish') }, async (request, reply) => {
      const read = readBody(request.body)
      if ('problem' in read) return sendProblem(reply, { code: 'bad_request', message: read.problem })
      const outcome = await publishes.fromBackend(read)
      if (isProblem(outcome)) {
        // The request is too large, not a backend's answer (RFC 9110 section 15.5.14).
        return sendProblem(reply, outcome, outcome.code === 'too_large' ? 413 : undefined)
      }
      const { epoch, seq, at, duplicate } = outcome
      return { key: read.key, epoch, seq, at, duplicate: duplicate || undefined }
    })
  })
}

function readBody(body: unknown) {
  if (typeof body !== 'string')
    return { problem: 'send a JSON object with key and data, and Content-Type: application/json' }
  try {
    return readPublishFields(body)
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return { problem: error.message }
  }
}
