// GET /v1/values/{key}: the value a WebSocket client would get, for code that still polls. From the same cache and the same
// single flight, with the version as entity tag.
import type { Problem } from '@keycast/protocol'
import type { Payer } from '@keycast/service'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Counts } from '../counts.ts'
import { type Coding, type Codings, isCodable } from '../encodings/codings.ts'
import { type Admitted, type Asker, askedOtherwise } from '../gate/gate.ts'
import type { Found, Result } from '../topics/values/cache.ts'
import type { Value } from '../topics/values/value.ts'
import { chooseCoding } from './http/accept-encoding.ts'
import { type Admit, securityHeaders } from './http/admit.ts'
import { countStatuses } from './http/count-statuses.ts'
import { matchesAny } from './http/entity-tags.ts'
import { queryProblem } from './http/key-in-path.ts'
import type { PendingLimit } from './http/pending-limit.ts'
import { sendProblem } from './http/problems.ts'
import type { UnreadBodies } from './http/unread-bodies.ts'
import { addVary } from './http/vary.ts'
import { cursorText, edgeAfter } from './wait/cursor.ts'

export interface ValuesDeps {
  gate: {
    recheck(admitted: Admitted): Problem | 'again' | undefined
    isViewers(key: string): boolean
    takesQuery(key: string): boolean
  }
  admit: Admit
  values: { fresh(wireKey: string, asOfMs?: number): Result | undefined }
  coded: Codings
  singleFlight: { want(wireKey: string, asker: Asker): Promise<Result> }
  pending: PendingLimit
  unreadBodies: Pick<UnreadBodies, 'hold'>
  counts: Pick<Counts, 'httpHits' | 'httpMisses' | 'httpValues'>
  wallNow: () => number
}

export function addValues(
  app: FastifyInstance,
  { gate, admit, values, coded, singleFlight, pending, unreadBodies, counts, wallNow }: ValuesDeps,
) {
  // Fastify adds HEAD, and has percent-decoded the key, once.
  app.get('/v1/values/*', { onResponse: countStatuses(counts.httpValues) }, async (request, reply) => {
    const admitted = await admit(request, reply, 'get')
    if (!admitted) return reply
    const { asker, key, wireKey, hasToken } = admitted
    const isOwn = wireKey !== key
    // Errors and requests without a token vary, too: another user has another answer.
    if (isOwn && !hasToken) addVary(reply, 'Authorization, Cookie')
    const misplaced = queryProblem(request, key, gate)
    if (misplaced) return sendProblem(reply, misplaced)
    const cached = values.fresh(wireKey)
    if (cached) counts.httpHits++
    else counts.httpMisses++
    const waited = cached
      ? { result: cached }
      : await pending.wait(asker.payer, () => singleFlight.want(wireKey, asker))
    if (waited.problem) return sendProblem(reply, waited.problem)
    const { result } = waited
    const form = result.value && (await formOf(request, result.value, isOwn))
    const refusal = gate.recheck(admitted)
    if (refusal) return sendProblem(reply, refusal === 'again' ? askedOtherwise : refusal)
    if (!result.value) return sendProblem(reply, result.problem)
    const { order } = result.value
    // From here on the client may wait for changes: see wait/wait.ts.
    if (!hasToken && result.store && order !== undefined && !gate.isViewers(key)) {
      reply.header('keycast-cursor', cursorText({ order, edge: edgeAfter(key, wallNow()) }))
    }
    return sendValue(reply, result, form as Form, { unreadBodies, payer: asker.payer, isOwn, isPrivate: hasToken })
  })

  async function formOf({ headers }: FastifyRequest, value: Value, isOwn: boolean): Promise<Form> {
    // A value for one user alone is not coded: a page that has text of its own put into it could learn the rest from
    // the length.
    const varies = !isOwn && isCodable(value)
    const coding = varies ? chooseCoding(headers['accept-encoding']) : undefined
    if (matchesAny(headers['if-none-match'], value.version)) return { body: undefined, coding, varies }
    const body = coding && (await coded(value, coding))
    return body ? { body, coding, varies } : { body: value.body, coding: undefined, varies }
  }
}

/** `body`: none where the client holds the version; `varies`: another request may be answered in another coding. */
interface Form {
  body: Buffer | undefined
  coding: Coding | undefined
  varies: boolean
}

/** @param how `isOwn`: only this user has the value; `isPrivate`: it is sent because of a token */
function sendValue(
  reply: FastifyReply,
  { value, ageMs, maxAgeMs, store }: Found,
  { body, coding, varies }: Form,
  {
    unreadBodies,
    payer,
    isOwn,
    isPrivate,
  }: Pick<ValuesDeps, 'unreadBodies'> & {
    payer: Payer | undefined
    isOwn: boolean
    isPrivate: boolean
  },
) {
  if (varies) addVary(reply, 'Accept-Encoding')
  reply.headers(securityHeaders).headers({
    // Weak for a coding (RFC 9110 section 8.8.3.3): other bytes, and the same version.
    etag: `${coding ? 'W/' : ''}"${value.version}"`,
    // The age is rounded up and its limit down: a cache on the way must not keep a value longer than this gateway
    // would.
    age: String(Math.ceil(ageMs / 1_000)),
  })
  const maxAge = `${isPrivate ? 'private, ' : ''}max-age=${Math.floor(maxAgeMs / 1_000)}`
  reply.header('cache-control', isOwn ? 'private, no-store' : store ? maxAge : 'no-store')
  if (!body) return reply.code(304).send()
  const full = unreadBodies.hold(body, reply.raw, payer)
  if (full) return sendProblem(reply, full)
  if (coding) reply.header('content-encoding', coding)
  return reply.header('content-type', value.contentType).send(body)
}
