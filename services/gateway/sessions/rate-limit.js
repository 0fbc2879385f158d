// The rate limit of each session: an allowance of requests, which may go into debt before the session is closed; and one of
// keys that it subscribes to, since each that no session watches yet is a request to the backend.
import { fullBucket, ratesOf, refill, waitMsFor } from './bucket.js'

/**
 * @typedef {import('./session.js').Session} Session
 * @typedef {ReturnType<typeof createRateLimit>} RateLimit
 */

/** A message counts as one request, and one more per so many bytes: a subscribe to thousands of keys is no single one. */
const BYTES_PER_REQUEST = 1_024

/** As how many requests a message that breaks the protocol counts as well: no honest client sends many. */
export const OFFENCE_REQUESTS = 10

/** Debt at which a session is closed, in seconds of its allowance: far past what an honest client's hurry makes. */
const DEBT_SECONDS_MAX = 2

/** Keys that are watched here already cost a place in a list and a value from memory: so many count as one. */
const WATCHED_KEYS_PER_KEY = 10

/**
 * @param {object} deps
 * @param {number} deps.requestsPerSecondMax
 * @param {number} deps.keysPerSessionMax
 * @param {Pick<import('./accounts.js').Accounts, 'charge' | 'keysWaitMs' | 'chargeKeys'>} deps.accounts
 * @param {(session: Session, code: 'abusive') => void} deps.end
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createRateLimit({ requestsPerSecondMax, keysPerSessionMax, accounts, end, now }) {
  const rates = ratesOf({ requestsPerSecondMax, keysPerSessionMax })

  /**
   * Charges a session, before it is served or for what its message turned out to cost. Ends it where it asked far too much.
   *
   * @param {Session} session
   * @param {number} requests as how many it counts
   * @returns {number} 0 where the session may go on; else how long it should wait before it tries the same again, in
   *   milliseconds; Infinity where this ended it
   */
  function charge(session, requests) {
    const allowance = refill(session.requestAllowance, rates.requests, now())
    allowance.left -= requests
    if (allowance.left >= 0) return accounts.charge(session.account, requests)
    if (allowance.left < -DEBT_SECONDS_MAX * requestsPerSecondMax) {
      end(session, 'abusive')
      return Number.POSITIVE_INFINITY
    }
    // The next try costs as much again: without its price a session that waits this long would be refused for ever.
    const priceOfRetry = Math.min(requests, rates.requests.max)
    return waitMsFor(priceOfRetry - allowance.left, rates.requests)
  }

  /**
   * How long a session should wait before it subscribes to keys, in milliseconds; 0 where it may now. One that may can
   * name as many as it likes: their price is known when they are subscribed, see {@link chargeKeys}.
   *
   * @param {Session} session
   */
  function keysWaitMs(session) {
    const { left } = refill(session.keyAllowance, rates.keys, now())
    if (left > 0) return accounts.keysWaitMs(session.account)
    // Until there is more than nothing.
    return Math.floor((-left * 1_000) / rates.keys.perSecond) + 1
  }

  /**
   * Charges a session for keys it subscribed to.
   *
   * @param {Session} session
   * @param {{ watchedBefore: number, watchedAnew: number }} keys how many
   */
  function chargeKeys(session, { watchedBefore, watchedAnew }) {
    const keys = watchedAnew + watchedBefore / WATCHED_KEYS_PER_KEY
    session.keyAllowance.left -= keys
    accounts.chargeKeys(session.account, keys)
  }

  /** What a session begins with. */
  function allowances() {
    const nowMs = now()
    return { requestAllowance: fullBucket(rates.requests, nowMs), keyAllowance: fullBucket(rates.keys, nowMs) }
  }

  return { charge, keysWaitMs, chargeKeys, allowances }
}

/** As how many requests a message counts. @param {number} messageBytes */
export function costOf(messageBytes) {
  return 1 + Math.floor(messageBytes / BYTES_PER_REQUEST)
}
