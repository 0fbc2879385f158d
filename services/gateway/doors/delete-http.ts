// DELETE of messages: an operator has one, all of a room, or all of a user deleted for good.
import type { RoomsBackbone } from '@keycast/backbone'
import { isProblem, isUser } from '@keycast/protocol'
import { addScope } from '@keycast/service'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Guard } from './http/guard.ts'
import { sendProblem } from './http/problems.ts'

/** The journal deletes on where it takes longer. */
const DELETE_MS = 30_000

interface Deps {
  guard: Guard
  gate: { operator: (kind: 'room', key: string) => Parameters<typeof sendProblem>[1] | undefined }
  rooms: { deleteMessages: RoomsBackbone['deleteMessages'] }
}

export function addDeletions(calls: FastifyInstance, { guard, gate, rooms }: Deps) {
  addScope(calls, 'deletions', async scope => {
    // Some programs name the type of a body on each request. None is read here, so an empty one is no JSON that is wrong.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_, _body, done) => done(null))

    scope.delete('/v1/rooms/:key', guard.recorded('admin'), async (request, reply) => {
      const { key } = request.params as { key: string }
      return answerOf(key, undefined, reply)
    })

    scope.delete('/v1/rooms/:key/messages/:seq', guard.recorded('admin'), async (request, reply) => {
      const { key, seq } = request.params as { key: string; seq: string }
      if (!/^\d{1,16}$/.test(seq) || !Number.isSafeInteger(Number(seq))) {
        return sendProblem(reply, { code: 'bad_request', message: 'a message is named by its seq, a whole number' })
      }
      return answerOf(key, [Number(seq)], reply)
    })

    scope.delete('/v1/users/:user/messages', guard.recorded('admin'), async (request, reply) => {
      const { user } = request.params as { user: string }
      if (!isUser(user)) return sendProblem(reply, { code: 'bad_request', message: 'this can be no user: see sub' })
      return answer(reply, { user })
    })
  })

  function answerOf(key: string, seqs: number[] | undefined, reply: FastifyReply) {
    const problem = gate.operator('room', key)
    return problem ? sendProblem(reply, problem) : answer(reply, { room: key, seqs })
  }

  async function answer(reply: FastifyReply, which: Parameters<RoomsBackbone['deleteMessages']>[0]) {
    const outcome = await rooms.deleteMessages(which, { deadlineMs: DELETE_MS })
    if (isProblem(outcome)) return sendProblem(reply, outcome)
    return { messagesDeleted: outcome.messages }
  }
}
