// GET /v1/messages/{key}: a part of a room's history, for code that polls or renders on a server. The same that `history`
// answers over the WebSocket.
import type { ServerResponse } from 'node:http'
import { type History, historyBody, isProblem, type Problem, ProtocolError, readHistoryQuery } from '@keycast/protocol'
import type { FastifyInstance } from 'fastify'
import type { Counts } from '../counts.ts'
import type { Admitted } from '../gate/gate.ts'
import type { Histories } from '../topics/rooms/histories.ts'
import { type Admit, securityHeaders } from './http/admit.ts'
import { countStatuses } from './http/count-statuses.ts'
import { type HttpProblem, sendProblem } from './http/problems.ts'

export interface MessagesDeps {
  gate: { recheck(admitted: Admitted): Problem | 'again' | undefined }
  admit: Admit
  histories: Histories
  unreadBodies: { hold(body: Buffer, response: ServerResponse): boolean }
  counts: Pick<Counts, 'httpMessages'>
}

/** At most so many requests wait for the journal or hold its answer: at 1 MiB each they take 64 MiB. */
const PENDING_MAX = 64

/** A refused request is to come back after this time: each one that waits is answered within seconds. */
const RETRY_MS = 1_000

const headers = Object.freeze({
  ...securityHeaders,
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
})

export function addMessages(app: FastifyInstance, { gate, admit, histories, unreadBodies, counts }: MessagesDeps) {
  let pending = 0

  app.get('/v1/messages/*', { onResponse: countStatuses(counts.httpMessages) }, async (request, reply) => {
    const admitted = await admit(request, reply, 'history')
    if (!admitted) return reply
    const { key } = admitted
    const asked = readQuery(key, request.query)
    if ('problem' in asked) return sendProblem(reply, asked.problem)
    if (pending >= PENDING_MAX) {
      return sendProblem(reply, { code: 'too_many_waiting', retryAfterMs: RETRY_MS })
    }
    pending++
    // Never rejects.
    const history = await histories.read(asked, admitted.asker.payer)
    pending--
    const refusal = gate.recheck(admitted)
    if (refusal && refusal !== 'again') return sendProblem(reply, refusal)
    if (isProblem(history)) return sendProblem(reply, history)
    const { messages, ...head } = history
    const body = historyBody({ key, ...head }, messages)
    if (!unreadBodies.hold(body, reply.raw)) return sendProblem(reply, { code: 'capacity' })
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
