// GET /v1/values/{key}: the value a WebSocket client would get, for code that still polls. From the same cache and the same
// single flight, with the version as entity tag.

import { createProblem } from '../keys/problem.js'
import { countOne } from '../metrics.js'
import { matchesAny } from './entity-tags.js'
import { sendProblem } from './problems.js'

/**
 * @typedef {import('../keys/entry.js').Found} Found
 *
 * @typedef {object} ValuesDeps
 * @property {Pick<import('../access/access.js').Access, 'check'>} access
 * @property {Pick<import('../access/backend/decisions.js').Decisions, 'applies' | 'ask'>} decisions
 * @property {Pick<import('../keys/own-values.js').OwnValues, 'wireKeyOf'>} ownValues
 * @property {ReturnType<typeof import('./authenticate.js').createAuthenticate>} authenticate
 * @property {Pick<import('../keys/values.js').Values, 'fresh'>} values
 * @property {Pick<import('../keys/single-flight.js').SingleFlight, 'want'>} singleFlight
 * @property {Pick<import('./unread-bodies.js').UnreadBodies, 'hold'>} unreadBodies
 * @property {Pick<import('../metrics.js').Counts, 'httpHits' | 'httpMisses' | 'httpValues'>} counts
 */

/** Under it the rest of the path is the key: an id may hold `/`. */
const VALUES_PATH = '/v1/values/'

/**
 * A value is shown as it is and runs nothing: it comes from a backend, and a page among values must not act under this
 * origin's name.
 */
const securityHeaders = Object.freeze({
  'content-security-policy': "default-src 'none'; sandbox",
  'x-content-type-options': 'nosniff',
  // Pages of other origins cannot read it; this keeps them from having it loaded as an image or script, too.
  'cross-origin-resource-policy': 'same-origin',
})

/**
 * @param {import('fastify').FastifyInstance} app
 * @param {ValuesDeps} deps
 */
export function addValues(
  app,
  { access, decisions, ownValues, authenticate, values, singleFlight, unreadBodies, counts },
) {
  /** @type {import('fastify').onResponseHookHandler} */
  const onResponse = (_, reply, done) => {
    countOne(counts.httpValues, String(reply.statusCode))
    done()
  }

  // Fastify adds HEAD, and has percent-decoded the key, once.
  app.get(`${VALUES_PATH}*`, { onResponse }, async (request, reply) => {
    const { '*': key } = /** @type {{ '*': string }} */ (request.params)
    const caller = await authenticate(request.raw)
    // A cache on the way must not answer one user with what it was sent for another.
    if (caller.hasToken) reply.header('vary', 'Authorization, Cookie')
    if ('problem' in caller) return sendProblem(reply, caller.problem, caller.status)
    const { rights, viewer } = caller
    const problem =
      access.check(rights, 'read', key) ?? (decisions.applies(key) ? await decisions.ask(viewer, key) : undefined)
    if (problem) return sendProblem(reply, problem)
    const wireKey = ownValues.wireKeyOf(viewer, key)
    const isOwn = wireKey !== key
    const cached = values.fresh(wireKey)
    if (cached) counts.httpHits++
    else counts.httpMisses++
    const result = cached ?? (await singleFlight.want(wireKey))
    const refusal = caller.revoked()
    if (refusal) return sendProblem(reply, refusal)
    // Also where there is none, and for who came without a token: another user has another answer.
    if (isOwn) reply.header('vary', 'Authorization, Cookie')
    if (!result.value) return sendProblem(reply, result.problem)
    return sendValue(request, reply, result, { unreadBodies, isOwn, isPrivate: caller.hasToken })
  })
}

/**
 * @param {import('fastify').FastifyRequest} request
 * @param {import('fastify').FastifyReply} reply
 * @param {Found} found
 * @param {{ unreadBodies: ValuesDeps['unreadBodies'], isOwn: boolean, isPrivate: boolean }} how `isOwn`: no other user has
 *   the same; `isPrivate`: it is sent for a token
 */
function sendValue({ headers }, reply, { value, ageMs, maxAgeMs, store }, { unreadBodies, isOwn, isPrivate }) {
  reply.headers(securityHeaders).headers({
    etag: `"${value.version}"`,
    // The age rounded up, its limit down: a cache on the way must not keep it longer than this gateway would.
    age: String(Math.ceil(ageMs / 1_000)),
  })
  const maxAge = `${isPrivate ? 'private, ' : ''}max-age=${Math.floor(maxAgeMs / 1_000)}`
  reply.header('cache-control', isOwn ? 'private, no-store' : store ? maxAge : 'no-store')
  if (matchesAny(headers['if-none-match'], value.version)) return reply.code(304).send()
  if (!unreadBodies.hold(value.body, reply.raw)) return sendProblem(reply, createProblem('capacity', performance.now()))
  return reply.header('content-type', value.contentType).send(value.body)
}
