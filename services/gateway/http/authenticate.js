// For whom an HTTP request is, and whether it may ask now: what an upgrade and a session are asked, for code that polls.

/**
 * @param {object} deps
 * @param {Pick<import('../access/identify.js').Identify, 'originOf' | 'verifyRequest'>} deps.identify
 * @param {import('../access/rights.js').Rights} deps.anonymous
 * @param {Pick<import('../access/backend/viewers.js').Viewers, 'of'>} deps.viewers
 * @param {Pick<import('../sessions/accounts.js').Accounts, 'of' | 'charge'>} deps.accounts
 */
export function createAuthenticate({ identify, anonymous, viewers, accounts }) {
  /**
   * @param {import('node:http').IncomingMessage} request
   * @returns {Promise<{ hasToken: boolean } & ({ rights: import('../access/rights.js').Rights,
   *   viewer: import('../access/backend/viewers.js').Viewer | undefined }
   *   | { problem: import('./problems.js').HttpProblem, status?: number })>}
   */
  return async function authenticate(request) {
    const origin = identify.originOf(request)
    const result = await identify.verifyRequest(request, origin.address)
    const hasToken = result !== undefined
    if (result && 'refused' in result) {
      const { code, message, retryAfterMs } = result.refused
      return { hasToken, problem: { code, message, retryAfterMs }, status: retryAfterMs === undefined ? 401 : 503 }
    }
    const verified = result?.verified
    const retryAfterMs = accounts.charge(accounts.of(verified?.user, origin), 1)
    if (retryAfterMs > 0) {
      return {
        hasToken,
        problem: { code: 'rate_limited', message: 'too many requests of this user or address', retryAfterMs },
      }
    }
    return { hasToken, rights: verified?.rights ?? anonymous, viewer: viewers.of(verified) }
  }
}
