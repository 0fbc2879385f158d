// POST /v1/refresh: a backend says which keys' content changed, and every fetcher node hears of it.
import { type Backbone, FetcherUnavailable } from '@keycast/backbone'
import { isUser, namespaceOf, type Problem, problemText } from '@keycast/protocol'
import type { ValueNamespaces } from '@keycast/service'
import type { FastifyInstance } from 'fastify'
import type { Guard } from './http/guard.ts'
import { sendProblem } from './http/problems.ts'

/** As many keys as a session may hold by default: a backend with more to refresh makes several calls. */
const KEYS_MAX = 5_000

/** 5,000 of the longest keys and what stands between them. */
const BODY_BYTES_MAX = 2 * 1024 ** 2

/** Each of them goes to every node with each 1,000 keys. */
const USERS_MAX = 1_000

/** Nodes must confirm in this time. A dead node is noticed, and no longer waited for, within 4 s. */
const REFRESH_DEADLINE_MS = 5_000

/** The caller repeats a refresh that did not reach every node after this time. */
const RETRY_AFTER_MS = 1_000

interface Deps {
  guard: Guard
  gate: { operator(of: 'value', key: string): Problem | undefined }
  backbone: Pick<Backbone, 'refresh'>
  namespaces: ValueNamespaces
}

export function addRefresh(calls: FastifyInstance, { guard, gate, backbone, namespaces }: Deps) {
  calls.post('/v1/refresh', { bodyLimit: BODY_BYTES_MAX, ...guard.call('refresh') }, async (request, reply) => {
    const { keys, users, problems } = readRefresh(request.body, gate, namespaces)
    if (problems.length > 0) {
      return sendProblem(reply, { code: 'bad_request', message: 'nothing was refreshed', problems })
    }
    try {
      await backbone.refresh(keys, { users, deadlineMs: REFRESH_DEADLINE_MS })
    } catch (error) {
      if (!(error instanceof FetcherUnavailable)) throw error
      const { message } = error
      return sendProblem(reply, { code: 'fetcher_unavailable', message, retryAfterMs: RETRY_AFTER_MS })
    }
    return reply.code(202).send({ keys: keys.length })
  })
}

/** A body may be wrong 5,000 times: the first few problems say enough. */
const PROBLEMS_MAX = 10

const notText: Problem = { code: 'bad_key', message: 'a key is a string' }

interface Refresh {
  /** Each once. */
  keys: string[]
  users?: string[]
  problems: string[]
}

function readRefresh(body: unknown, gate: Deps['gate'], namespaces: ValueNamespaces): Refresh {
  const { keys, problems } = readKeys(body, gate, namespaces)
  const users = typeof body === 'object' && body !== null && 'users' in body ? body.users : undefined
  if (problems.length > 0 || users === undefined) return { keys, problems }
  if (!Array.isArray(users) || users.length === 0 || !users.every(user => typeof user === 'string' && isUser(user))) {
    return { keys, problems: ['users must be a list of users, as their tokens name them, with their prefix'] }
  }
  if (users.length > USERS_MAX) return { keys, problems: [`at most ${USERS_MAX} users may be named at once`] }
  const shared = keys.find(key => !namespaces.get(namespaceOf(key))?.isPerUser)
  if (shared === undefined) return { keys, users, problems }
  return { keys, problems: [`${shared} has one value for all: users are for keys with per: user`] }
}

/** @returns each key once */
function readKeys(
  body: unknown,
  gate: Deps['gate'],
  namespaces: ValueNamespaces,
): { keys: string[]; problems: string[] } {
  const listed = typeof body === 'object' && body !== null && 'keys' in body ? body.keys : undefined
  if (!Array.isArray(listed) || listed.length === 0) {
    return { keys: [], problems: ['the body must be {"keys":[…]} with at least one key'] }
  }
  if (listed.length > KEYS_MAX) return { keys: [], problems: [`at most ${KEYS_MAX} keys may be named at once`] }
  const problems: string[] = []
  for (const [index, key] of listed.entries()) {
    const problem = typeof key === 'string' ? (gate.operator('value', key) ?? neverFetched(key, namespaces)) : notText
    if (problem) problems.push(`keys[${index}]: ${problemText(problem)}`)
    if (problems.length === PROBLEMS_MAX) break
  }
  return { keys: [...new Set(listed)], problems }
}

const neverFetched = (key: string, namespaces: ValueNamespaces): Problem | undefined =>
  namespaces.get(namespaceOf(key))?.source === 'pushed'
    ? { code: 'bad_key', message: 'its values are handed over, and never fetched: PUT /v1/values/{key}' }
    : undefined
