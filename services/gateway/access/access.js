// The one place that decides what may be done with a key. Every door comes here before it does anything with a key that was
// sent to it: get, subscribe, publish, history, GET /v1/values, GET /v1/messages, and for the operator GET /v1/keys,
// POST /v1/refresh, POST /v1/publish, GET /v1/rooms. A key that is cached is no exception.
import { idOf, keyProblem, namespaceOf } from '@keycast/protocol'
import { idProblem } from '@keycast/service'
import { countOne } from '../counts.js'
import { createProblem } from '../keys/problem.js'
import { decide } from './rights.js'

/**
 * @typedef {import('../keys/problem.js').Problem} Problem
 * @typedef {ReturnType<typeof createAccess>} Access
 */

const NO_VALUES = 'no values here, this namespace is of rooms: subscribe to the key, or ask for its history'
const NO_ROOMS = 'no rooms here, this namespace is of values: they are read, and nobody publishes there'

/**
 * @param {object} deps
 * @param {import('@keycast/service').Namespaces & { journal: import('@keycast/service').JournalNamespaces }} deps.namespaces
 * @param {Pick<import('../keys/cache.js').Cache, 'peek'>} deps.cache
 * @param {Pick<import('../counts.js').Counts, 'accessRefused'>} deps.counts
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createAccess({ namespaces, cache, counts, now }) {
  const { journal } = namespaces

  /**
   * The reason why a client may not ask for a value, or `undefined` if it may. The rights come before the namespace and
   * the cache: neither the answer nor its time tells whether a forbidden key exists.
   *
   * @param {import('./rights.js').Rights} rights
   * @param {import('./rights.js').Verb} verb
   * @param {string} key anything a client sent
   * @returns {Problem | undefined} `bad_key`, `unauthenticated`, `forbidden` or `unknown_namespace`
   */
  function check(rights, verb, key) {
    return refusalOf(rights, verb, key) ?? namespaceProblem(key)
  }

  /**
   * The same for a room.
   *
   * @param {import('./rights.js').Rights} rights
   * @param {import('./rights.js').Verb} verb
   * @param {string} key anything a client sent
   * @returns {Problem | undefined}
   */
  function checkRoom(rights, verb, key) {
    return refusalOf(rights, verb, key) ?? roomProblem(key)
  }

  /**
   * The reason why the rights do not cover a key, of a value or of a room.
   *
   * @param {import('./rights.js').Rights} rights
   * @param {import('./rights.js').Verb} verb
   * @param {string} key anything a client sent
   * @returns {Problem | undefined} `bad_key`, `unauthenticated` or `forbidden`
   */
  function refusalOf(rights, verb, key) {
    const problem = grammarProblem(key)
    if (problem) return problem
    const refusal = decide(rights, verb, key)
    if (!refusal) return undefined
    countOne(counts.accessRefused, refusal.code)
    return createProblem(refusal.code, now(), { message: refusal.message })
  }

  /**
   * The same for the backend and the operator, whom no rights bound.
   *
   * @param {string} key anything they sent
   * @returns {Problem | undefined} `bad_key` or `unknown_namespace`
   */
  function checkForOperator(key) {
    return grammarProblem(key) ?? namespaceProblem(key)
  }

  /**
   * The same for a room.
   *
   * @param {string} key anything they sent
   * @returns {Problem | undefined}
   */
  function checkRoomForOperator(key) {
    return grammarProblem(key) ?? roomProblem(key)
  }

  /**
   * The problem of a key itself, be it of a value or of a room.
   *
   * @param {string} key anything they sent
   * @returns {Problem | undefined}
   */
  function checkAnyForOperator(key) {
    return grammarProblem(key) ?? (journal.get(namespaceOf(key)) ? roomProblem(key) : namespaceProblem(key))
  }

  /** @param {string} key */
  function grammarProblem(key) {
    const message = keyProblem(key)
    return message === undefined ? undefined : createProblem('bad_key', now(), { message })
  }

  /** @param {string} key keeps the grammar */
  function namespaceProblem(key) {
    // Only keys that passed have entries.
    if (cache.peek(key)) return undefined
    const namespace = namespaces.get(namespaceOf(key))
    if (namespace) return idProblemOf(namespace, key)
    return createProblem('unknown_namespace', now(), journal.get(namespaceOf(key)) && { message: NO_VALUES })
  }

  /** @param {string} key keeps the grammar */
  function roomProblem(key) {
    const namespace = journal.get(namespaceOf(key))
    if (namespace) return idProblemOf({}, key)
    return createProblem('unknown_namespace', now(), namespaces.get(namespaceOf(key)) && { message: NO_ROOMS })
  }

  /** @param {Parameters<typeof idProblem>[0]} namespace @param {string} key */
  function idProblemOf(namespace, key) {
    const message = idProblem(namespace, idOf(key))
    return message === undefined ? undefined : createProblem('bad_key', now(), { message })
  }

  return { check, checkRoom, refusalOf, checkForOperator, checkRoomForOperator, checkAnyForOperator }
}
