// The one place that decides whether a key may be asked for. Every door comes here before it does anything with a key that
// was sent to it: get, subscribe, GET /v1/values, and for the operator GET /v1/keys, POST /v1/refresh. A key that is cached
// is no exception.
import { idOf, keyProblem, namespaceOf } from '@keycast/protocol'
import { idProblem } from '@keycast/service'
import { createProblem } from '../keys/problem.js'
import { countOne } from '../metrics.js'
import { decide } from './rights.js'

/**
 * @typedef {import('../keys/problem.js').Problem} Problem
 * @typedef {ReturnType<typeof createAccess>} Access
 */

/**
 * @param {object} deps
 * @param {import('@keycast/service').Namespaces} deps.namespaces
 * @param {Pick<import('../keys/cache.js').Cache, 'peek'>} deps.cache
 * @param {Pick<import('../metrics.js').Counts, 'accessRefused'>} deps.counts
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createAccess({ namespaces, cache, counts, now }) {
  /**
   * Why a client may not ask for a key, or `undefined` where it may. The rights come before the namespace and the cache:
   * neither the answer nor its time tells whether a forbidden key exists.
   *
   * @param {import('./rights.js').Rights} rights
   * @param {import('./rights.js').Verb} verb
   * @param {string} key anything a client sent
   * @returns {Problem | undefined} `bad_key`, `unauthenticated`, `forbidden` or `unknown_namespace`
   */
  function check(rights, verb, key) {
    const problem = grammarProblem(key)
    if (problem) return problem
    const refusal = decide(rights, verb, key)
    if (!refusal) return namespaceProblem(key)
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

  /** @param {string} key */
  function grammarProblem(key) {
    const message = keyProblem(key)
    return message === undefined ? undefined : createProblem('bad_key', now(), { message })
  }

  /** @param {string} key which keeps the grammar */
  function namespaceProblem(key) {
    // Only keys that passed have entries.
    if (cache.peek(key)) return undefined
    const namespace = namespaces.get(namespaceOf(key))
    if (!namespace) return createProblem('unknown_namespace', now())
    const message = idProblem(namespace, idOf(key))
    return message === undefined ? undefined : createProblem('bad_key', now(), { message })
  }

  return { check, checkForOperator }
}
