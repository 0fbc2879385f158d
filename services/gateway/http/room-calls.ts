// The calls of a backend about rooms: `POST /v1/publish` for messages of its own, `GET /v1/rooms/{key}` to answer "why did
// it not arrive?".
import { ProtocolError, readPublishFields } from '@keycast/protocol'
import { sendProblem } from './problems.ts'

/** The largest message there may be, a key, an id and a name, and what JSON puts around them. */
const BODY_BYTES_MAX = 516 * 1_024

/**
 * @param {import('fastify').FastifyInstance} calls under the guard of the token
 * @param {object} deps
 * @param {Pick<import('../gate/gate.ts').Gate, 'operator'>} deps.gate
 * @param {Pick<import('../rooms/publishes.ts').Publishes, 'fromBackend'>} deps.publishes
 * @param {Pick<import('../rooms/rooms.ts').Rooms, 'describe' | 'membersOf'>} deps.rooms
 */
export function addRoomCalls(calls, { gate, publishes, rooms }) {
  calls.register(async scope => {
    // Read as text: the message's data is passed on exactly as it is written.
    scope.removeContentTypeParser('application/json')
    scope.addContentTypeParser('application/json', { parseAs: 'string' }, (_, body, done) => done(null, body))

    scope.post('/v1/publish', { bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
      const read = readBody(request.body)
      if ('problem' in read) return sendProblem(reply, { code: 'bad_request', message: read.problem })
      const outcome = await publishes.fromBackend(read)
      if (outcome.code !== undefined) {
        // The request is too large, not a backend's answer (RFC 9110 section 15.5.14).
        return sendProblem(reply, outcome, outcome.code === 'too_large' ? 413 : undefined)
      }
      const { epoch, seq, at, duplicate } = outcome
      return { key: read.key, epoch, seq, at, duplicate: duplicate || undefined }
    })
  })

  // As at /v1/keys: the id may hold `/`.
  calls.get('/v1/rooms/*', async (request, reply) => {
    const { '*': key } = /** @type {{ '*': string }} */ (request.params)
    const problem = gate.operator('room', key)
    if (problem) return sendProblem(reply, problem)
    return { ...rooms.describe(key), members: describeMembers(await rooms.membersOf(key)) }
  })
}

/** @param {Awaited<ReturnType<import('@keycast/backbone').RoomsBackbone['membersOf']>>} outcome */
function describeMembers(outcome) {
  if (outcome.error !== undefined) return { code: outcome.error, message: outcome.message }
  return { count: outcome.count, listed: outcome.members }
}

/** @param {unknown} body */
function readBody(body) {
  if (typeof body !== 'string')
    return { problem: 'send a JSON object with key and data, and Content-Type: application/json' }
  try {
    return readPublishFields(body)
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return { problem: error.message }
  }
}
