// GET /v1/messages/{key}: a part of a room's history, for code that polls or renders on a server. The same that `history`
// answers over the WebSocket.
import { type History, historyBody, isProblem, type Problem, ProtocolError, readHistoryQuery } from '@keycast/protocol'
import type { FastifyInstance } from 'fastify'
import type { Counts } from '../counts.ts'
import { type Admitted, askedOtherwise } from '../gate/gate.ts'
import type { Histories } from '../topics/rooms/histories.ts'
import { type Admit, securityHeaders } from './http/admit.ts'
import { countStatuses } from './http/count-statuses.ts'
import { createPendingLimit } from './http/pending-limit.ts'
import { type HttpProblem, sendProblem } from './http/problems.ts'
import type { UnreadBodies } from './http/unread-bodies.ts'

export interface MessagesDeps {
  gate: { recheck(admitted: Admitted): Problem | 'again' | undefined }
  admit: Admit
  histories: Histories
  unreadBodies: Pick<UnreadBodies, 'hold'>
  counts: Pick<Counts, 'httpMessages'>
}

/** At most so many requests wait for the journal or hold its answer: at 1 MiB each they take 64 MiB. */
const PENDING_MAX = 64

const headers = Object.freeze({
  ...securityHeaders,
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
})

export function addMessages(app: FastifyInstance, { gate, admit, histories, unreadBodies, counts }: MessagesDeps) {
  const reads = createPendingLimit(PENDING_MAX)

  app.get('/v1/messages/*', { onResponse: countStatuses(counts.httpMessages) }, async (request, reply) => {
    const admitted = await admit(request, reply, 'history')
    if (!admitted) return reply
    const { key } = admitted
    const asked = readQuery(key, request.query)
    if ('problem' in asked) return sendProblem(reply, asked.problem)
    const { payer } = admitted.asker
    const { result: history, problem } = await reads.wait(payer, () => histories.read(asked, payer))
    if (problem) return sendProblem(reply, problem)
    const refusal = gate.recheck(admitted)
    if (refusal) return sendProblem(reply, refusal === 'again' ? askedOtherwise : refusal)
    if (isProblem(history)) return sendProblem(reply, history)
    const { messages, ...head } = history
    const body = historyBody({ key, ...head }, messages)
    const full = unreadBodies.hold(body, reply.raw, payer)
    if (full) return sendProblem(reply, full)
    return reply.headers(headers).send(body)
  })
}

function readQuery(key: string, query: unknown): History | { problem: HttpProblem } {
  try {
    return readHistoryQuery(key, query as Record<string, unknown>)
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return { problem: { code: error.code, message: error.message } }
  }
}
