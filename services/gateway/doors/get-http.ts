// GET /v1/values/{key}: the value a WebSocket client would get, for code that still polls. From the same cache and the same
// single flight, with the version as entity tag.
import type { Namespaces } from '@keycast/service'
import type { FastifyInstance, FastifyReply, FastifyRequest, onResponseHookHandler } from 'fastify'
import { type Counts, countOne } from '../counts.ts'
import type { Gate } from '../gate/gate.ts'
import type { Found } from '../topics/values/entry.ts'
import type { SingleFlight } from '../topics/values/single-flight.ts'
import type { Values } from '../topics/values/values.ts'
import { type Admit, securityHeaders } from './http/admit.ts'
import { matchesAny } from './http/entity-tags.ts'
import type { PendingLimit } from './http/pending-limit.ts'
import { sendProblem } from './http/problems.ts'
import type { UnreadBodies } from './http/unread-bodies.ts'
import { cursorText, edgeAfter } from './wait/cursor.ts'
import { isForAll } from './wait/wait.ts'

export interface ValuesDeps {
  gate: Pick<Gate, 'recheck'>
  admit: Admit
  values: Pick<Values, 'fresh'>
  singleFlight: Pick<SingleFlight, 'want'>
  namespaces: Pick<Namespaces, 'get'>
  pending: PendingLimit
  unreadBodies: Pick<UnreadBodies, 'hold'>
  counts: Pick<Counts, 'httpHits' | 'httpMisses' | 'httpValues'>
  /** In milliseconds since 1970. */
  wallNow: () => number
}

/** Under it the rest of the path is the key: an id may hold `/`. */
const VALUES_PATH = '/v1/values/'

export function addValues(
  app: FastifyInstance,
  { gate, admit, values, singleFlight, namespaces, pending, unreadBodies, counts, wallNow }: ValuesDeps,
) {
  const onResponse: onResponseHookHandler = (_, reply, done) => {
    countOne(counts.httpValues, String(reply.statusCode))
    done()
  }

  // Fastify adds HEAD, and has percent-decoded the key, once.
  app.get(`${VALUES_PATH}*`, { onResponse }, async (request, reply) => {
    const admitted = await admit(request, reply, 'get')
    if (!admitted) return reply
    const { key, wireKey, hasToken } = admitted
    const isOwn = wireKey !== key
    const cached = values.fresh(wireKey)
    if (cached) counts.httpHits++
    else counts.httpMisses++
    const waited = cached ? { result: cached } : await pending.wait(() => singleFlight.want(wireKey))
    if (waited.problem) return sendProblem(reply, waited.problem)
    const { result } = waited
    const refusal = gate.recheck(admitted)
    if (refusal && refusal !== 'again') return sendProblem(reply, refusal)
    // Errors and requests without a token vary, too: another user has another answer.
    if (isOwn) reply.header('vary', 'Authorization, Cookie')
    if (!result.value) return sendProblem(reply, result.problem)
    const { order } = result.value
    // From here on the client may wait for changes: see wait/wait.ts.
    if (!hasToken && result.store && order !== undefined && isForAll(namespaces, key)) {
      reply.header('keycast-cursor', cursorText({ order, edge: edgeAfter(key, wallNow()) }))
    }
    return sendValue(request, reply, result, { unreadBodies, isOwn, isPrivate: hasToken })
  })
}

/** @param how `isOwn`: only this user has the value; `isPrivate`: it is sent because of a token */
function sendValue(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { value, ageMs, maxAgeMs, store }: Found,
  { unreadBodies, isOwn, isPrivate }: { unreadBodies: ValuesDeps['unreadBodies']; isOwn: boolean; isPrivate: boolean },
) {
  reply.headers(securityHeaders).headers({
    etag: `"${value.version}"`,
    // The age is rounded up and its limit down: a cache on the way must not keep a value longer than this gateway
    // would.
    age: String(Math.ceil(ageMs / 1_000)),
  })
  const maxAge = `${isPrivate ? 'private, ' : ''}max-age=${Math.floor(maxAgeMs / 1_000)}`
  reply.header('cache-control', isOwn ? 'private, no-store' : store ? maxAge : 'no-store')
  if (matchesAny(headers['if-none-match'], value.version)) return reply.code(304).send()
  if (!unreadBodies.hold(value.body, reply.raw)) return sendProblem(reply, { code: 'capacity' })
  return reply.header('content-type', value.contentType).send(value.body)
}
