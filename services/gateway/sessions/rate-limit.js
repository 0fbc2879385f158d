// The rate limit of each session: a bucket of tokens for requests, refilled steadily, that may go into debt before the
// session is closed; and one for the keys it subscribes to, since each that no session watches yet is a request to the backend.

/**
 * @typedef {import('./session.js').Session} Session
 * @typedef {ReturnType<typeof createRateLimit>} RateLimit
 */

/** A message costs one token, and one more per so many bytes: a subscribe to thousands of keys is no single request. */
const BYTES_PER_TOKEN = 1_024

/** What a message that breaks the protocol costs as well: no honest client sends many. */
export const OFFENCE_TOKENS = 10

/** Debt at which a session is closed, in seconds of its allowance: far past what an honest client's hurry makes. */
const DEBT_SECONDS_MAX = 2

/** For keys that are watched here already: they cost a place in a list and a value from memory. */
const WATCHED_KEYS_PER_TOKEN = 10

/**
 * @param {object} deps
 * @param {number} deps.requestsPerSecondMax one second's requests may be sent at once
 * @param {number} deps.keysPerSessionMax so many keys may be subscribed to at once, and after that as many new ones a
 *   second as requests
 * @param {Pick<import('./accounts.js').Accounts, 'charge' | 'keysWaitMs' | 'chargeKeys'>} deps.accounts
 * @param {(session: Session, code: 'abusive') => void} deps.end
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createRateLimit({ requestsPerSecondMax, keysPerSessionMax, accounts, end, now }) {
  const keyTokensMax = Math.max(requestsPerSecondMax, keysPerSessionMax)

  /**
   * Charges a session, before it is served or for what its message turned out to cost. Ends it where it asked far too much.
   *
   * @param {Session} session
   * @param {number} tokens
   * @returns {number} 0 where the session may go on; else how long it should wait before it tries the same again, in
   *   milliseconds; Infinity where this ended it
   */
  function charge(session, tokens) {
    const nowMs = now()
    const refilled = session.tokens + ((nowMs - session.tokensAtMs) * requestsPerSecondMax) / 1_000
    session.tokens = Math.min(refilled, requestsPerSecondMax) - tokens
    session.tokensAtMs = nowMs
    if (session.tokens >= 0) return accounts.charge(session.account, tokens)
    if (session.tokens < -DEBT_SECONDS_MAX * requestsPerSecondMax) {
      end(session, 'abusive')
      return Number.POSITIVE_INFINITY
    }
    // The next try costs as much again: without its price a session that waits this long would be refused for ever.
    const priceOfRetry = Math.min(tokens, requestsPerSecondMax)
    return Math.ceil(((priceOfRetry - session.tokens) * 1_000) / requestsPerSecondMax)
  }

  /**
   * How long a session should wait before it subscribes to keys, in milliseconds; 0 where it may now. One that may can
   * name as many as it likes: their price is known when they are subscribed, see {@link chargeKeys}.
   *
   * @param {Session} session
   */
  function keysWaitMs(session) {
    const nowMs = now()
    const refilled = session.keyTokens + ((nowMs - session.keyTokensAtMs) * requestsPerSecondMax) / 1_000
    session.keyTokens = Math.min(refilled, keyTokensMax)
    session.keyTokensAtMs = nowMs
    if (session.keyTokens > 0) return accounts.keysWaitMs(session.account)
    return Math.floor((-session.keyTokens * 1_000) / requestsPerSecondMax) + 1
  }

  /**
   * Charges a session for keys it subscribed to.
   *
   * @param {Session} session
   * @param {{ watchedBefore: number, watchedAnew: number }} keys how many
   */
  function chargeKeys(session, { watchedBefore, watchedAnew }) {
    const tokens = watchedAnew + watchedBefore / WATCHED_KEYS_PER_TOKEN
    session.keyTokens -= tokens
    accounts.chargeKeys(session.account, tokens)
  }

  return { charge, keysWaitMs, chargeKeys, atStart: { tokens: requestsPerSecondMax, keyTokens: keyTokensMax } }
}

/** @param {number} messageBytes */
export function costOf(messageBytes) {
  return 1 + Math.floor(messageBytes / BYTES_PER_TOKEN)
}
