// POST /v1/access: tells an operator why a user may or may not use a key, and has backends asked again whether they may.
import type { Problem } from '@keycast/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Change } from '../access/backend/decisions.ts'
import type { Explain } from '../access/explain.ts'
import type { Guard } from './http/guard.ts'
import { sendProblem } from './http/problems.ts'
import { tellGateways } from './http/tell-gateways.ts'

/** A token, or the rights of one, and a key. */
const VIEWER_BYTES_MAX = 16 * 1_024

/** Not by `min`: zod compares the `length` of whatever it is given, which throws where that is an object. */
const named = z.string().refine(text => text !== '')

const asked = z.strictObject({ user: named.optional(), key: named.optional() })

const viewer = z.union([
  z.strictObject({ key: z.string(), token: z.string() }),
  z.strictObject({ key: z.string(), sub: named, keys: z.unknown().optional() }),
  z.strictObject({ key: z.string() }),
])

interface Deps {
  guard: Guard
  explain: Explain
  /** Has backends asked again about a user, a key or both; returns how many decisions of this gateway that concerns. */
  askAgain: (change: Change) => number
  /** Has the other gateways do so; absent where nothing would keep it for them. */
  shareAsking?: (change: Change) => Promise<Problem | undefined>
}

export function addAccess(calls: FastifyInstance, { guard, explain, askAgain, shareAsking }: Deps) {
  // Posted, so that a token is in no URL, which is logged.
  const accessCall = {
    bodyLimit: VIEWER_BYTES_MAX,
    ...guard.call('revoke'),
    onSend: async (request: FastifyRequest, reply: FastifyReply) => {
      if (isAsk(request.body)) await guard.record(request, reply)
    },
  }
  calls.post('/v1/access', accessCall, async (request, reply) => {
    if (isAsk(request.body)) {
      const change = asked.safeParse(request.body.ask)
      if (!change.success || (!change.data.user && !change.data.key)) {
        const message = 'ask must be {"user":USER}, {"key":K} or both: about whom or what the backend decides otherwise'
        return sendProblem(reply, { code: 'bad_request', message })
      }
      const decisions = askAgain(change.data)
      const done = { ...change.data, decisions }
      const what = `asked again at this gateway alone, about ${decisions} decisions`
      return tellGateways(reply, what, done, shareAsking?.(change.data))
    }
    const refusal = guard.refusal(request, reply, 'admin')
    if (refusal) return refusal
    const parsed = viewer.safeParse(request.body)
    if (!parsed.success) {
      const message = 'the body must be {"key":K} with {"token":T}, {"sub":USER} and perhaps {"keys":{…}}, or neither'
      return sendProblem(reply, { code: 'bad_request', message })
    }
    const { key, ...who } = parsed.data
    const explained = await explain(key, who)
    if ('problem' in explained) return sendProblem(reply, { code: 'bad_request', message: explained.problem })
    return explained
  })
}

const isAsk = (body: unknown): body is { ask: unknown } => typeof body === 'object' && body !== null && 'ask' in body
