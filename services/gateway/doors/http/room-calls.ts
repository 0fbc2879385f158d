// The calls of a backend about rooms: `POST /v1/publish` for messages of its own, `GET /v1/rooms/{key}` to answer "why did
// it not arrive?".
import type { RoomsBackbone } from '@keycast/backbone'
import { isProblem, ProtocolError, problemText, readPublishFields } from '@keycast/protocol'
import type { FastifyInstance } from 'fastify'
import type { Gate } from '../../gate/gate.ts'
import type { Publishes } from '../../topics/rooms/publishes.ts'
import type { Rooms } from '../../topics/rooms/rooms.ts'
import { sendProblem } from './problems.ts'

/** The largest message there may be, a key, an id and a name, and what JSON puts around them. */
const BODY_BYTES_MAX = 516 * 1_024

interface Deps {
  gate: Pick<Gate, 'operator'>
  publishes: Pick<Publishes, 'fromBackend'>
  rooms: Pick<Rooms, 'describe' | 'membersOf'>
}

/** @param calls under the guard of the token */
export function addRoomCalls(calls: FastifyInstance, { gate, publishes, rooms }: Deps) {
  calls.register(async scope => {
    // Read as text: the message's data is passed on exactly as it is written.
    scope.removeContentTypeParser('application/json')
    scope.addContentTypeParser('application/json', { parseAs: 'string' }, (_, body, done) => done(null, body))

    scope.post('/v1/publish', { bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
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

  // As at /v1/keys: the id may hold `/`.
  calls.get('/v1/rooms/*', async (request, reply) => {
    const { '*': key } = request.params as { '*': string }
    const problem = gate.operator('room', key)
    if (problem) return sendProblem(reply, problem)
    return { ...rooms.describe(key), members: describeMembers(await rooms.membersOf(key)) }
  })
}

function describeMembers(outcome: Awaited<ReturnType<RoomsBackbone['membersOf']>>) {
  if (isProblem(outcome)) return { code: outcome.code, message: problemText(outcome) }
  return { count: outcome.count, listed: outcome.members }
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
