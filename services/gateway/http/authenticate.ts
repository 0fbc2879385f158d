// Finds the user of an HTTP request and charges the request to that user's allowance, as an upgrade and a session do.
// For code that polls.
import { REFUSED } from '../access/tokens/tokens.ts'

/** @type {import('../keys/problem.ts').Refusal} */
const REVOKED = Object.freeze({ code: 'token_refused', message: REFUSED })

/**
 * @param {object} deps
 * @param {Pick<import('../access/identify.ts').Identify, 'peerOf' | 'verifyRequest'>} deps.identify
 * @param {import('../access/rights.ts').Rights} deps.anonymous
 * @param {Pick<import('../access/backend/viewers.ts').Viewers, 'of'>} deps.viewers
 * @param {Pick<import('../sessions/accounts.ts').Accounts, 'of' | 'charge'>} deps.accounts
 * @param {Pick<import('../access/revocations/revocations.ts').Revocations, 'isRevoked'>} deps.revocations
 */
export function createAuthenticate({ identify, anonymous, viewers, accounts, revocations }) {
  /**
   * @param {import('node:http').IncomingMessage} request
   * @returns {Promise<{ hasToken: boolean } & ({ rights: import('../access/rights.ts').Rights, viewer:
   *   import('../access/backend/viewers.ts').Viewer | undefined, account: import('../sessions/accounts.ts').Account |
   *   undefined, revoked: () => import('../keys/problem.ts').Refusal | undefined } | { problem:
   *   import('./problems.ts').HttpProblem, status?: number })>} `revoked`: ask it before anything is sent, because the
   *   token may have been revoked while the request waited
   */
  return async function authenticate(request) {
    const peer = identify.peerOf(request)
    const result = await identify.verifyRequest(request, peer.address)
    const hasToken = result !== undefined
    if (result && 'refused' in result) {
      const { code, message, retryAfterMs } = result.refused
      return { hasToken, problem: { code, message, retryAfterMs }, status: retryAfterMs === undefined ? 401 : 503 }
    }
    const verified = result?.verified
    const account = accounts.of(verified?.user, peer)
    const retryAfterMs = accounts.charge(account, 1)
    if (retryAfterMs > 0) {
      return {
        hasToken,
        problem: {
          code: 'rate_limited',
          message: `too many requests of this ${verified ? 'user' : 'address'}, of all sessions together: send fewer`,
          retryAfterMs,
        },
      }
    }
    const revoked = () => (verified && revocations.isRevoked(verified) ? REVOKED : undefined)
    return { hasToken, rights: verified?.rights ?? anonymous, viewer: viewers.of(verified), account, revoked }
  }
}
