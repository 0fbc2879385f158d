// GET /v1/wait/{key}: answers when the key changes, or at an edge. Everybody who holds a version sends the same request,
// so a cache in front, such as a CDN's, sends one of them here and gives all its answer. Whoever asks is anonymous,
// whatever headers come: a cache gives the answer to anybody.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { isProblem, type Problem } from '@keycast/protocol'
import type { FastifyInstance, FastifyReply, onSendHookHandler } from 'fastify'
import type { Rights } from '../../access/rights.ts'
import type { Counts } from '../../counts.ts'
import { type Act, notForAll } from '../../gate/gate.ts'
import type { Entry } from '../../topics/values/cache.ts'
import { problemNow } from '../../topics/values/failure.ts'
import type { Paying } from '../../topics/values/payer-choice.ts'
import { askedAtOf } from '../../topics/values/staleness.ts'
import { securityHeaders } from '../http/admit.ts'
import { forAnyPage } from '../http/cors.ts'
import { countStatuses } from '../http/count-statuses.ts'
import { keyOf } from '../http/key-in-path.ts'
import { type HttpProblem, sendProblem } from '../http/problems.ts'
import type { UnreadBodies } from '../http/unread-bodies.ts'
import { type Cursor, cursorText, edgeAfter, readWaitQuery, timeOfEdge } from './cursor.ts'
import type { WaitedKey, WaitedKeys } from './waited-keys.ts'

export interface WaitDeps {
  readonly gate: {
    check(rights: Rights, act: Act, key: string): Problem | undefined
    isViewers(key: string): boolean
  }
  readonly peek: (key: string) => Entry | undefined
  readonly waitedKeys: WaitedKeys
  /** Connections that are no sessions: as many as there may be. */
  readonly connectionsMax: number
  readonly anonymous: Rights
  /** Whom the sender of a request stands for, whatever token comes. Another object for each request. */
  readonly payingOf: (request: IncomingMessage) => Paying
  readonly unreadBodies: Pick<UnreadBodies, 'hold'>
  readonly counts: Pick<Counts, 'httpWaits'>
  /** In milliseconds since 1970: gateways have the same edges. */
  readonly wallNow: () => number
  readonly now: () => number
}

/**
 * Those who wait hold this part of those connections at most. They count for no address, so that one of them could
 * otherwise keep all new WebSockets out.
 */
const SHARE_OF_CONNECTIONS = 3 / 4

const TOO_MANY_WAITING: Problem = { code: 'too_many_waiting', retryAfterMs: 1_000 }

const headers = Object.freeze({ ...securityHeaders, ...forAnyPage })

/** Answers that are cached, else requests that waited together would come one by one. Another status says nothing to others. */
const cacheControlOf: Readonly<Record<number, string>> = {
  200: 'public, max-age=5',
  204: 'public, max-age=1',
  404: 'public, max-age=1',
  502: 'public, max-age=1',
  503: 'public, max-age=1',
  504: 'public, max-age=1',
}

const BAD_QUERY: HttpProblem = {
  code: 'bad_request',
  message:
    'the query must be after=VERSION&cursor=O.E and nothing else, GET /v1/values/{key} gives the first cursor; the ? of a key is %3F',
}

const OLD_FETCHER: Problem = {
  code: 'fetcher_unavailable',
  message: 'the fetcher is too old to say the order of versions',
}

export function addWait(
  app: FastifyInstance,
  { gate, peek, waitedKeys, connectionsMax, anonymous, payingOf, unreadBodies, counts, now, wallNow }: WaitDeps,
) {
  const waitingMax = Math.floor(connectionsMax * SHARE_OF_CONNECTIONS)
  let waiting = 0
  /** Connections on which a request waits. Another one, sent before the answer, would be a place without a connection. */
  const taken = new WeakSet<Socket>()

  /** Refusals of the one who pays. Another who asks has room, and a cache would give them the refusal. */
  const ofOne = new WeakSet<FastifyReply>()

  function refuseOne(reply: FastifyReply, problem: Problem) {
    ofOne.add(reply)
    return sendProblem(reply, problem)
  }

  const onSend: onSendHookHandler = (_, reply, payload, done) => {
    reply.header('cache-control', (!ofOne.has(reply) && cacheControlOf[reply.statusCode]) || 'no-store')
    done(null, payload)
  }

  app.get(
    '/v1/wait/*',
    { exposeHeadRoute: false, onResponse: countStatuses(counts.httpWaits), onSend },
    async (request, reply) => {
      reply.headers(headers)
      const key = keyOf(request)
      const given = readWaitQuery(request.raw.url ?? '')
      if (!given) return sendProblem(reply, BAD_QUERY)
      // The rights first: else the answer would tell that a backend decides about a key that the client may not read.
      const problem = problemOf(key)
      if (problem) return sendProblem(reply, problem)
      // A gateway that drained, or whose clock is a little ahead, may have given the cursor. Where its clock is far ahead the
      // request ends at an edge of this one's: a client that comes to either in turn must not be refused.
      const edge = edgeAfter(key, wallNow())
      const cursor = given.edge > edge + 1 ? { ...given, edge } : given
      const { socket } = request.raw
      if (waiting >= waitingMax || taken.has(socket)) return sendProblem(reply, TOO_MANY_WAITING)
      const by = payingOf(request.raw)
      const waited = waitedKeys.open(key, by)
      if (isProblem(waited)) return refuseOne(reply, waited)
      waiting++
      taken.add(socket)
      try {
        return await answer(waited, cursor, by, reply)
      } finally {
        waiting--
        taken.delete(socket)
        waitedKeys.close(waited, by)
      }
    },
  )

  function problemOf(key: string): Problem | undefined {
    return gate.check(anonymous, 'get', key) ?? (gate.isViewers(key) ? notForAll : undefined)
  }

  async function answer(waited: WaitedKey, cursor: { after: string } & Cursor, by: Paying, reply: FastifyReply) {
    const { key } = waited
    let mayPay = true
    for (;;) {
      if (reply.raw.destroyed) return reply
      // It waits for its turn after it was woken, too: keycast.yaml may be another by now.
      const problem = problemOf(key)
      if (problem) return sendProblem(reply, problem)
      if (waited.ended) {
        if (waited.ended.code !== 'capacity') return sendProblem(reply, waited.ended)
        // The one who pays has had their share: the next who waits pays.
        const refusal = mayPay && waited.paying.payer !== by.payer ? waitedKeys.open(key, by) : waited.ended
        mayPay = false
        if (isProblem(refusal)) return refuseOne(reply, refusal)
      }
      const entry = peek(key)
      // A value from before the watch may be old.
      const isCurrent = entry && (entry.isWatchAnswered || now() - askedAtOf(entry) <= entry.maxAgeMs)
      const value = isCurrent ? entry.value : undefined
      if (entry && value) {
        if (value.order === undefined) return sendProblem(reply, OLD_FETCHER)
        if (!entry.store) return sendProblem(reply, notForAll)
        if (value.order === cursor.order && value.version !== cursor.after) return sendProblem(reply, BAD_QUERY)
        // Else a gateway that is behind would have the cache keep the version before.
        if (value.order > cursor.order) {
          const full = unreadBodies.hold(value.body, reply.raw, by.payer)
          if (full) return refuseOne(reply, full)
          const next = { order: value.order, edge: edgeAfter(key, wallNow()) }
          reply.headers({ etag: `"${value.version}"`, 'keycast-cursor': cursorText(next) })
          return reply.header('content-type', value.contentType).send(value.body)
        }
      } else if (entry?.failure && !entry.value) {
        return sendProblem(reply, problemNow(entry.failure, now()))
      }
      const leftMs = timeOfEdge(key, cursor.edge) - wallNow()
      if (leftMs <= 0 || waitedKeys.isDraining()) {
        // Before the edge the one after it: a cache would answer the same request with this for as long as it keeps it.
        const next = { order: cursor.order, edge: edgeAfter(key, wallNow()) + (leftMs > 0 ? 1 : 0) }
        return reply.code(204).header('keycast-cursor', cursorText(next)).send()
      }
      await waitedKeys.next(waited, leftMs, reply.raw)
    }
  }
}
