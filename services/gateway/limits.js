// How much a session may ask: a bucket of tokens, refilled steadily, that may go into debt before the session is closed.

/** @typedef {import('./session.js').Session} Session */

/** A message costs one token, and one more per so many bytes: a subscribe to thousands of keys is no single request. */
const BYTES_PER_TOKEN = 1_024

/** What a message that breaks the protocol costs beside: no honest client sends many. */
const OFFENCE_TOKENS = 10

/** Debt at which a session is closed, in seconds of its allowance: far past what an honest client's hurry makes. */
const DEBT_SECONDS_MAX = 2

/**
 * @param {{ requestsPerSecondMax: number }} options one second's allowance may be used at once
 */
export function createLimits({ requestsPerSecondMax }) {
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

  return { take, tokensAtStart: requestsPerSecondMax }
}

/** @param {number} messageBytes */
export function costOf(messageBytes) {
  return 1 + Math.floor(messageBytes / BYTES_PER_TOKEN)
}

export { OFFENCE_TOKENS }
