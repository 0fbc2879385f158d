// GET /v1/messages/{key}: a part of a room's history, for code that polls or renders on a server. The same that `history`
// answers over the WebSocket.
import { historyBody, ProtocolError, readHistoryQuery } from '@keycast/protocol'
import { createProblem } from '../keys/problem.js'
import { countOne } from '../metrics.js'
import { sendProblem } from './problems.js'

/**
 * @typedef {object} MessagesDeps
 * @property {Pick<import('../access/access.js').Access, 'checkRoom'>} access
 * @property {Pick<import('../access/backend/decisions.js').Decisions, 'applies' | 'ask'>} decisions
 * @property {ReturnType<typeof import('./authenticate.js').createAuthenticate>} authenticate
 * @property {Pick<import('../rooms/histories.js').Histories, 'read'>} histories
 * @property {Pick<import('./unread-bodies.js').UnreadBodies, 'hold'>} unreadBodies
 * @property {Pick<import('../metrics.js').Counts, 'httpMessages'>} counts
 */

/** Requests that wait for the journal at a time, or hold what it answered: at 1 MiB each they take 64 MiB. */
const PENDING_MAX = 64

/** When to ask again: each request that waits is answered within seconds. */
const RETRY_MS = 1_000

/** A message is shown as it is and runs nothing, see values.js. */
const headers = Object.freeze({
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; sandbox",
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
})

/**
 * @param {import('fastify').FastifyInstance} app
 * @param {MessagesDeps} deps
 */
export function addMessages(app, { access, decisions, authenticate, histories, unreadBodies, counts }) {
  let pending = 0

  /** @type {import('fastify').onResponseHookHandler} */
  const onResponse = (_, reply, done) => {
    countOne(counts.httpMessages, String(reply.statusCode))
    done()
  }

  app.get('/v1/messages/*', { onResponse }, async (request, reply) => {
    const { '*': key } = /** @type {{ '*': string }} */ (request.params)
    const caller = await authenticate(request.raw)
    if (caller.hasToken) reply.header('vary', 'Authorization, Cookie')
    if ('problem' in caller) return sendProblem(reply, caller.problem, caller.status)
    const { rights, viewer } = caller
    const refusal =
      access.checkRoom(rights, 'read', key) ?? (decisions.applies(key) ? await decisions.ask(viewer, key) : undefined)
    if (refusal) return sendProblem(reply, refusal)
    const asked = readQuery(key, request.query)
    if ('problem' in asked) return sendProblem(reply, asked.problem)
    if (pending >= PENDING_MAX) {
      return sendProblem(reply, createProblem('too_many_waiting', performance.now(), { retryAfterMs: RETRY_MS }))
    }
    pending++
    // Never rejects.
    const { problem, history } = await histories.read(asked)
    pending--
    const revoked = caller.revoked()
    if (revoked) return sendProblem(reply, revoked)
    if (!history) return sendProblem(reply, problem)
    const { messages, ...head } = history
    const body = historyBody({ key, ...head }, messages)
    if (!unreadBodies.hold(body, reply.raw)) return sendProblem(reply, createProblem('capacity', performance.now()))
    return reply.headers(headers).send(body)
  })
}

/**
 * @param {string} key @param {unknown} query
 * @returns {import('@keycast/protocol').History | { problem: import('./problems.js').HttpProblem }}
 */
function readQuery(key, query) {
  try {
    return readHistoryQuery(key, /** @type {Record<string, unknown>} */ (query))
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return { problem: { code: error.code, message: error.message } }
  }
}
