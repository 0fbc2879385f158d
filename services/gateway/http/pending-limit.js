// Limits how many HTTP requests wait for the fetcher at a time. A session counts its own gets; a request has no session.
import { createProblem } from '../keys/problem.js'

/** @typedef {Pick<import('../keys/single-flight.js').SingleFlight, 'want'>} Wanting */

/** A refused request is to come back after this time: each one that waits is answered within seconds. */
const RETRY_MS = 1_000

/**
 * Past the limit a request is answered `too_many_waiting` at once.
 *
 * @param {Wanting} singleFlight
 * @param {number} pendingMax
 * @param {() => number} [now] monotonic, in milliseconds
 * @returns {Wanting}
 */
export function limitPending({ want }, pendingMax, now = () => performance.now()) {
  let pending = 0
  return {
    async want(key, options) {
      if (pending >= pendingMax) {
        return { problem: createProblem('too_many_waiting', now(), { retryAfterMs: RETRY_MS, isLocal: true }) }
      }
      pending++
      // Never rejects.
      const result = await want(key, options)
      pending--
      return result
    },
  }
}
