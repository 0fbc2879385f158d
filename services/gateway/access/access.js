// The one place that decides whether a key may be asked for. Every door comes here before it does anything with a key that
// was sent to it: get, subscribe, GET /v1/values, GET /v1/keys, POST /v1/refresh. A key that is cached is no exception:
// only its grammar need not be checked again.
import { keyProblem, namespaceOf } from '@keycast/protocol'
import { createProblem } from '../keys/problem.js'

/** @typedef {ReturnType<typeof createAccess>} Access */

/**
 * @param {object} deps
 * @param {import('@keycast/service').Namespaces} deps.namespaces
 * @param {Pick<import('../keys/cache.js').Cache, 'peek'>} deps.cache
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createAccess({ namespaces, cache, now }) {
  /**
   * Why a key may not be asked for, or `undefined` where it may.
   *
   * @param {string} key anything a client sent
   * @returns {import('../keys/problem.js').Problem | undefined} `bad_key` or `unknown_namespace`
   */
  function check(key) {
    return grammarProblem(key)
  }

  /** @param {string} key */
  function grammarProblem(key) {
    // Only well-formed keys of known namespaces have entries.
    if (cache.peek(key)) return undefined
    const message = keyProblem(key)
    if (message) return createProblem('bad_key', now(), { message })
    if (!namespaces.get(namespaceOf(key))) return createProblem('unknown_namespace', now())
    return undefined
  }

  return { check }
}
