// The calls of the backend and the operator, on the internal listener and under a bearer token: `POST /v1/refresh` when
// content changed, `GET /v1/keys/{key}` to answer "why is this stale?", `POST /v1/access` to answer "why may ann not read
// this?", `POST /v1/revoke` to end a user's sessions, `GET /v1/rooms/{key}` to answer "why did it not arrive?".
import { isIP } from 'node:net'
import { type Backbone, FetcherUnavailable, type Published, type RoomsBackbone } from '@keycast/backbone'
import { isProblem, isUser, namespaceOf, type Problem, problemText } from '@keycast/protocol'
import type { ValueNamespace, ValueNamespaces, World } from '@keycast/service'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Change } from '../../access/backend/decisions.ts'
import type { Explain } from '../../access/explain.ts'
import { type Revocation, readRevocation } from '../../access/revocations/revocations.ts'
import type { Rooms } from '../../topics/rooms/rooms.ts'
import type { Values } from '../../topics/values/values.ts'
import { addDeletions } from '../delete-http.ts'
import { addHandOver } from '../hand-over-http.ts'
import { addPublish } from '../publish-http.ts'
import type { ApiToken } from './api-tokens.ts'
import { createGuard } from './guard.ts'
import { sendProblem } from './problems.ts'

/** As many keys as a session may hold by default: a backend with more to refresh makes several calls. */
const KEYS_MAX = 5_000

/** A name of 512 characters, each of them escaped. */
const REVOCATION_BYTES_MAX = 8 * 1_024

/** 5,000 of the longest keys and what stands between them. */
const BODY_BYTES_MAX = 2 * 1024 ** 2

/** Each of them goes to every node with each 1,000 keys. */
const USERS_MAX = 1_000

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

/** Nodes must confirm in this time. A dead node is noticed, and no longer waited for, within 4 s. */
const REFRESH_DEADLINE_MS = 5_000

/** The caller repeats a refresh that did not reach every node after this time. */
const RETRY_AFTER_MS = 1_000

interface Deps extends Pick<World, 'wallNow' | 'turn'> {
  gate: { operator(of: 'value' | 'room', key: string): Problem | undefined }
  explain: Explain
  revoke: (revocation: Revocation) => { outcome: 'added' | 'known' | 'full'; sessions: number }
  /** Tells the other gateways; absent where nothing would keep it for them. */
  shareRevocation?: (revocation: Revocation) => Promise<Problem | undefined>
  /** Has them close the sessions of an address, likewise. */
  shareClosing?: (address: string) => Promise<Problem | undefined>
  /** Has backends asked again about a user, a key or both; returns how many decisions of this gateway that concerns. */
  askAgain: (change: Change) => number
  shareAsking?: (change: Change) => Promise<Problem | undefined>
  values: Pick<Values, 'describe'>
  ownValues: { countOf(key: string): number }
  backbone: Pick<Backbone, 'refresh' | 'handOver'>
  namespaces: ValueNamespaces
  publishes: {
    fromBackend(message: { key: string; messageId?: string; from: string; data: string }): Promise<Published | Problem>
  }
  rooms: Pick<Rooms, 'describe' | 'membersOf' | 'deleteMessages'>
  /** Ends this gateway's sessions of a client's address; returns how many those were. */
  endAddress: (address: string) => number
  apiTokens: ApiToken[]
  /** Takes a line about what an operator did. */
  audit: (line: string) => void
}

/** @param app of the internal listener */
export function addInternal(app: FastifyInstance, deps: Deps) {
  const {
    gate,
    explain,
    values,
    ownValues,
    backbone,
    namespaces,
    rooms,
    revoke,
    shareRevocation,
    shareClosing,
    askAgain,
    shareAsking,
    wallNow,
    turn,
    endAddress,
  } = deps
  const guard = createGuard({ tokens: deps.apiTokens, audit: deps.audit, wallNow })
  app.register(async calls => {
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

    calls.post(
      '/v1/revoke',
      { bodyLimit: REVOCATION_BYTES_MAX, ...guard.recorded('revoke') },
      async (request, reply) => {
        const read = readRevocation(request.body, wallNow())
        if ('problem' in read) return sendProblem(reply, { code: 'bad_request', message: read.problem })
        const { outcome, sessions } = revoke(read.revocation)
        if (outcome === 'full') {
          const message = 'nothing was revoked: the list is full. Change the key that signs the tokens instead'
          return sendProblem(reply, { code: 'revocations_full', message })
        }
        const ended = { ...read.revocation, sessionsEnded: sessions }
        return tellAll(reply, alone('revoked', sessions), ended, shareRevocation?.(read.revocation))
      },
    )

    calls.post(
      '/v1/close',
      { bodyLimit: REVOCATION_BYTES_MAX, ...guard.recorded('revoke') },
      async (request, reply) => {
        const { address } = (request.body ?? {}) as { address?: unknown }
        if (typeof address !== 'string' || isIP(address) === 0) {
          return sendProblem(reply, {
            code: 'bad_request',
            message: 'the body must be {"address":"192.0.2.7"}, or IPv6',
          })
        }
        const ended = { address, sessionsEnded: endAddress(address) }
        return tellAll(reply, alone('closed', ended.sessionsEnded), ended, shareClosing?.(address))
      },
    )

    addHandOver(calls, { guard, gate, namespaces, backbone, turn })
    addPublish(calls, { publishes: deps.publishes, guard })
    addDeletions(calls, { guard, gate, rooms })

    // Posted, so that a token is in no URL, which is logged.
    const accessCall = {
      bodyLimit: VIEWER_BYTES_MAX,
      ...guard.call('revoke'),
      onResponse: async (request: FastifyRequest, reply: FastifyReply) => {
        if (isAsk(request.body)) await guard.record(request, reply)
      },
    }
    calls.post('/v1/access', accessCall, async (request, reply) => {
      if (isAsk(request.body)) {
        const change = asked.safeParse(request.body.ask)
        if (!change.success || (!change.data.user && !change.data.key)) {
          const message =
            'ask must be {"user":USER}, {"key":K} or both: about whom or what the backend decides otherwise'
          return sendProblem(reply, { code: 'bad_request', message })
        }
        const decisions = askAgain(change.data)
        const done = { ...change.data, decisions }
        const what = `asked again at this gateway alone, about ${decisions} decisions`
        return tellAll(reply, what, done, shareAsking?.(change.data))
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

    // As at /v1/values: the id may hold `/`.
    calls.get('/v1/keys/*', guard.call('admin'), async (request, reply) => {
      const { '*': key } = request.params as { '*': string }
      const problem = gate.operator('value', key)
      if (problem) return sendProblem(reply, problem)
      const namespace = namespaces.get(namespaceOf(key))
      if (namespace?.isPerUser) return describeOwn(key, ownValues.countOf(key), namespace)
      return describeKey(values.describe(key), namespace)
    })

    calls.get('/v1/rooms/*', guard.call('admin'), async (request, reply) => {
      const { '*': key } = request.params as { '*': string }
      const problem = gate.operator('room', key)
      if (problem) return sendProblem(reply, problem)
      return { ...rooms.describe(key), members: describeMembers(await rooms.membersOf(key)) }
    })
  })
}

/**
 * Answers once the other gateways are told what was ended here.
 *
 * @param telling them; absent where nothing would keep it for them
 */
const alone = (done: string, sessions: number) => `${done} at this gateway alone, which ended ${sessions} sessions`

const isAsk = (body: unknown): body is { ask: unknown } => typeof body === 'object' && body !== null && 'ask' in body

/** @param what was done where the others cannot be told */
async function tellAll<T extends object>(
  reply: FastifyReply,
  what: string,
  done: T,
  telling: Promise<Problem | undefined> | undefined,
) {
  // No other gateway would be told, and the caller must not believe that one was.
  if (!telling) return { ...done, reach: 'this gateway: call each one' }
  const failed = await telling
  if (!failed) return { ...done, reach: 'every gateway' }
  const message = `${what}: ${problemText(failed)}. Call again`
  return sendProblem(reply, { code: 'journal_unavailable', message, retryAfterMs: RETRY_AFTER_MS })
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

/** The state of a key, for operators. Ages are in milliseconds; unknown fields are absent. */
function describeKey(
  { key, owner, watched, subscribers, waiters, stale, value, lastFailure }: ReturnType<Values['describe']>,
  namespace: ValueNamespace | undefined,
) {
  return {
    key,
    owner: { node: owner.node ?? null, alive: owner.alive },
    watched,
    sessionsWatching: subscribers,
    getsWaiting: waiters,
    held: value !== undefined,
    stale,
    version: value?.version,
    ageMs: value?.ageMs,
    maxAgeMs: value?.maxAgeMs,
    store: value?.store,
    bytes: value?.bytes,
    contentType: value?.contentType,
    lastFailure,
    namespace: namespace && timesOf(namespace),
  }
}

/** The state of a key whose values differ per user. It shows no user's value, and no user's name. */
function describeOwn(key: string, usersHeld: number, namespace: ValueNamespace | undefined) {
  return { key, perUser: true, usersHeld, namespace: namespace && timesOf(namespace) }
}

function describeMembers(outcome: Awaited<ReturnType<RoomsBackbone['membersOf']>>) {
  if (isProblem(outcome)) return { code: outcome.code, message: problemText(outcome) }
  return { count: outcome.count, listed: outcome.members }
}

function timesOf({ refreshMs, maxAgeMs, timeoutMs, bytesMax }: ValueNamespace) {
  return { refreshMs, maxAgeMs, timeoutMs, bytesMax }
}
