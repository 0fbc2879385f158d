// GET /v1/messages/{key}: a part of a room's history, for code that polls or renders on a server. The same that `history`
// answers over the WebSocket.
import { historyBody, ProtocolError, readHistoryQuery } from '@keycast/protocol'
import { countOne } from '../counts.ts'
import { createProblem } from '../keys/problem.ts'
import { securityHeaders } from './admit.ts'
import { sendProblem } from './problems.ts'

/**
 * @typedef {object} MessagesDeps
 * @property {Pick<import('../gate/gate.ts').Gate, 'recheck'>} gate
 * @property {import('./admit.ts').Admit} admit
 * @property {Pick<import('../rooms/histories.ts').Histories, 'read'>} histories
 * @property {Pick<import('./unread-bodies.ts').UnreadBodies, 'hold'>} unreadBodies
 * @property {Pick<import('../counts.ts').Counts, 'httpMessages'>} counts
 */

/** At most so many requests wait for the journal or hold its answer: at 1 MiB each they take 64 MiB. */
const PENDING_MAX = 64

/** A refused request is to come back after this time: each one that waits is answered within seconds. */
const RETRY_MS = 1_000

const headers = Object.freeze({
  ...securityHeaders,
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
})

/**
 * @param {import('fastify').FastifyInstance} app
 * @param {MessagesDeps} deps
 */
export function addMessages(app, { gate, admit, histories, unreadBodies, counts }) {
  let pending = 0

  /** @type {import('fastify').onResponseHookHandler} */
  const onResponse = (_, reply, done) => {
    countOne(counts.httpMessages, String(reply.statusCode))
    done()
  }

  app.get('/v1/messages/*', { onResponse }, async (request, reply) => {
    const admitted = await admit(request, reply, 'history')
    if (!admitted) return reply
    const { key } = admitted
    const asked = readQuery(key, request.query)
    if ('problem' in asked) return sendProblem(reply, asked.problem)
    if (pending >= PENDING_MAX) {
      return sendProblem(reply, createProblem('too_many_waiting', performance.now(), { retryAfterMs: RETRY_MS }))
    }
    pending++
    // Never rejects.
    const { problem, history } = await histories.read(asked)
    pending--
    const refusal = gate.recheck(admitted)
    if (refusal && refusal !== 'again') return sendProblem(reply, refusal)
    if (!history) return sendProblem(reply, problem)
    const { messages, ...head } = history
    const body = historyBody({ key, ...head }, messages)
    if (!unreadBodies.hold(body, reply.raw)) return sendProblem(reply, createProblem('capacity', performance.now()))
    return reply.headers(headers).send(body)
  })
}

/**
 * @param {string} key @param {unknown} query
 * @returns {import('@keycast/protocol').History | { problem: import('./problems.ts').HttpProblem }}
 */
function readQuery(key, query) {
  try {
    return readHistoryQuery(key, /** @type {Record<string, unknown>} */ (query))
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return { problem: { code: error.code, message: error.message } }
  }
}
