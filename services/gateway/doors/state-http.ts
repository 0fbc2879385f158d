// GET /v1/keys/{key} and GET /v1/rooms/{key}: what this gateway knows of a key, for an operator who asks why a value is stale
// or why a message did not arrive.
import type { RoomsBackbone } from '@keycast/backbone'
import { isProblem, namespaceOf, type Problem, problemText } from '@keycast/protocol'
import type { ValueNamespace, ValueNamespaces } from '@keycast/service'
import type { FastifyInstance } from 'fastify'
import type { Rooms } from '../topics/rooms/rooms.ts'
import type { Values } from '../topics/values/values.ts'
import type { Guard } from './http/guard.ts'
import { keyOf, queryProblem } from './http/key-in-path.ts'
import { sendProblem } from './http/problems.ts'

interface Deps {
  guard: Guard
  gate: { operator(of: 'value' | 'room', key: string): Problem | undefined; takesQuery(key: string): boolean }
  values: Pick<Values, 'describe'>
  ownValues: { countOf(key: string): number }
  namespaces: ValueNamespaces
  rooms: Pick<Rooms, 'describe' | 'membersOf'>
}

export function addState(calls: FastifyInstance, { guard, gate, values, ownValues, namespaces, rooms }: Deps) {
  calls.get('/v1/keys/*', guard.call('admin'), async (request, reply) => {
    const key = keyOf(request)
    const problem = gate.operator('value', key) ?? queryProblem(request, key, gate)
    if (problem) return sendProblem(reply, problem)
    const namespace = namespaces.get(namespaceOf(key))
    if (namespace?.isPerUser) return describeOwn(key, ownValues.countOf(key), namespace)
    return describeKey(values.describe(key), namespace)
  })

  calls.get('/v1/rooms/*', guard.call('admin'), async (request, reply) => {
    const key = keyOf(request)
    const problem = gate.operator('room', key)
    if (problem) return sendProblem(reply, problem)
    return { ...rooms.describe(key), members: describeMembers(await rooms.membersOf(key)) }
  })
}

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
