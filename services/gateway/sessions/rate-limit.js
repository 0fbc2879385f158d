// How much a session may ask: a bucket of tokens for requests, refilled steadily, that may go into debt before the session
// is closed; and one for the keys it subscribes to, since each that nobody watches yet is a fetch for the backend.

/** @typedef {import('./session.js').Session} Session */

/** A message costs one token, and one more per so many bytes: a subscribe to thousands of keys is no single request. */
const BYTES_PER_TOKEN = 1_024

/** What a message that breaks the protocol costs beside: no honest client sends many. */
const OFFENCE_TOKENS = 10

/** Debt at which a session is closed, in seconds of its allowance: far past what an honest client's hurry makes. */
const DEBT_SECONDS_MAX = 2

/** Of keys that are watched here already: they cost a place in a list and a value from memory. */
const WATCHED_KEYS_PER_TOKEN = 10

/**
 * @param {{ requestsPerSecondMax: number, keysPerSessionMax: number }} options one second's requests may be sent at once;
 *   so may a subscribe to all the keys there may be, after which as many keys a second are new as requests
 */
export function createLimits({ requestsPerSecondMax, keysPerSessionMax }) {
  const keyTokensMax = Math.max(requestsPerSecondMax, keysPerSessionMax)

  /**
   * Charges a session.
   *
   * @param {Session} session
   * @param {number} tokens
   * @param {number} nowMs
   * @returns {number} 0 where the session may go on; else how long it should wait, in milliseconds; Infinity where it
   *   asked so much that it is to be closed
   */
  function take(session, tokens, nowMs) {
    const refilled = session.tokens + ((nowMs - session.tokensAtMs) * requestsPerSecondMax) / 1_000
    session.tokens = Math.min(refilled, requestsPerSecondMax) - tokens
    session.tokensAtMs = nowMs
    if (session.tokens >= 0) return 0
    if (session.tokens < -DEBT_SECONDS_MAX * requestsPerSecondMax) return Number.POSITIVE_INFINITY
    return Math.ceil((-session.tokens * 1_000) / requestsPerSecondMax)
  }

  /**
   * How long a session should wait before it subscribes to keys, in milliseconds; 0 where it may now. One that may can
   * name as many as it likes: what they cost is known when they are subscribed, see {@link takeKeys}.
   *
   * @param {Session} session
   * @param {number} nowMs
   */
  function keysWaitMs(session, nowMs) {
    const refilled = session.keyTokens + ((nowMs - session.keyTokensAtMs) * requestsPerSecondMax) / 1_000
    session.keyTokens = Math.min(refilled, keyTokensMax)
    session.keyTokensAtMs = nowMs
    return session.keyTokens > 0 ? 0 : Math.floor((-session.keyTokens * 1_000) / requestsPerSecondMax) + 1
  }

  /**
   * Charges a session for keys it subscribed to.
   *
   * @param {Session} session
   * @param {{ watchedBefore: number, watchedAnew: number }} keys how many
   */
  function takeKeys(session, { watchedBefore, watchedAnew }) {
    session.keyTokens -= watchedAnew + watchedBefore / WATCHED_KEYS_PER_TOKEN
  }

  return { take, keysWaitMs, takeKeys, atStart: { tokens: requestsPerSecondMax, keyTokens: keyTokensMax } }
}

/** @param {number} messageBytes */
export function costOf(messageBytes) {
  return 1 + Math.floor(messageBytes / BYTES_PER_TOKEN)
}

export { OFFENCE_TOKENS }
