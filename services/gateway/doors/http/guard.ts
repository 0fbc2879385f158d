// The callers that may act as the backend or the operator, and the record of what operators did.
import { excerpt } from '@keycast/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { bearerToken } from '../../access/token-source.ts'
import { type ApiToken, createHolders, type Scope } from './api-tokens.ts'
import { sendProblem } from './problems.ts'

export type Guard = ReturnType<typeof createGuard>

interface Deps {
  tokens: ApiToken[]
  /** Takes a line of the audit log. */
  audit: (line: string) => void
  /** In milliseconds since 1970. */
  wallNow: () => number
}

export function createGuard({ tokens, audit, wallNow }: Deps) {
  const holderOf = createHolders(tokens)
  const callers = new WeakMap<FastifyRequest, Omit<ApiToken, 'token'>>()

  /** Admits only calls with a token of that scope. */
  function may(scope: Scope) {
    return async (request: FastifyRequest, reply: FastifyReply) => {
      if (tokens.length === 0) {
        return sendProblem(reply, { code: 'no_token_set', message: 'API_TOKENS is not set: this call is switched off' })
      }
      const holder = holderOf(bearerToken(request.headers) ?? '')
      if (!holder) {
        const message = !request.headers.authorization
          ? 'send Authorization: Bearer and an API token'
          : 'the token is wrong'
        return sendProblem(reply.header('www-authenticate', 'Bearer'), { code: 'unauthorized', message })
      }
      callers.set(request, holder)
      return refusal(request, reply, scope)
    }
  }

  /** @param request that was admitted @returns where its token lacks the scope, the answer that says so */
  function refusal(request: FastifyRequest, reply: FastifyReply, scope: Scope) {
    const { name, scopes } = callers.get(request) as Omit<ApiToken, 'token'>
    if (scopes.includes(scope) || scopes.includes('admin')) return undefined
    const message = `the token of ${name} has no scope ${scope}: API_TOKENS says which it has`
    return sendProblem(reply, { code: 'scope_missing', message })
  }

  /**
   * Of what is done for good, or to people: a line says who did it, tried to, and what came of it. Before the answer is
   * sent: a caller that hangs up meanwhile has none.
   */
  async function record(request: FastifyRequest, { statusCode }: FastifyReply) {
    const caller = callers.get(request)?.name
    if (caller === undefined) return
    const { method, url, body } = request
    const at = new Date(wallNow()).toISOString()
    audit(JSON.stringify({ at, caller, method, path: url, body: shown(body) ?? undefined, status: statusCode }))
  }

  return {
    /** Options of a route. */
    call: (scope: Scope) => ({ onRequest: may(scope) }),
    recorded: (scope: Scope) => ({ onRequest: may(scope), onSend: record }),
    refusal,
    record,
  }
}

/**
 * Without a token that was sent to the wrong call. Calls have no more levels. Deeper ones are cut: `JSON.stringify` fails on
 * what is nested some thousand levels deep.
 */
function shown(body: unknown, levels = 2): unknown {
  if (typeof body !== 'object' || body === null) return body
  if (levels === 0) return excerpt(body)
  if (Array.isArray(body)) return body.map(each => shown(each, levels - 1))
  const fields = Object.entries(body).map(([name, each]) => [name, name === 'token' ? '…' : shown(each, levels - 1)])
  return Object.fromEntries(fields)
}
