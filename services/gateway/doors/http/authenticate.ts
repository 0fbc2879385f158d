// Finds the user of an HTTP request and charges the request to that user's allowance, as an upgrade and a session do.
// For code that polls.
import type { IncomingMessage } from 'node:http'
import type { Problem } from '@keycast/protocol'
import type { Viewer, Viewers } from '../../access/backend/viewers.ts'
import type { Identify } from '../../access/identify.ts'
import type { Revocations } from '../../access/revocations/revocations.ts'
import type { Rights } from '../../access/rights.ts'
import { tokenRefused } from '../../access/tokens/tokens.ts'
import type { Account, Accounts } from '../../sessions/accounts.ts'
import type { HttpProblem } from './problems.ts'

interface Deps {
  identify: Pick<Identify, 'peerOf' | 'verifyRequest'>
  anonymous: Rights
  viewers: Pick<Viewers, 'enter' | 'leave'>
  accounts: Pick<Accounts, 'of' | 'charge'>
  revocations: Pick<Revocations, 'isRevoked'>
}

export function createAuthenticate({ identify, anonymous, viewers, accounts, revocations }: Deps) {
  /**
   * @returns `revoked`: ask it before anything is sent, because the token may have been revoked while the request
   *   waited
   */
  return async function authenticate(request: IncomingMessage): Promise<
    { hasToken: boolean } & (
      | {
          rights: Rights
          viewer: Viewer | undefined
          account: Account | undefined
          revoked: () => Problem | undefined
          leave: () => void
        }
      | { problem: HttpProblem; status?: number }
    )
  > {
    const peer = identify.peerOf(request)
    const result = await identify.verifyRequest(request, peer.address)
    const hasToken = result !== undefined
    if (result && 'refused' in result) {
      const { problem } = result.refused
      return { hasToken, problem, status: problem.retryAfterMs === undefined ? 401 : 503 }
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
    const revoked = () => (verified && revocations.isRevoked(verified) ? tokenRefused : undefined)
    const viewer = viewers.enter(verified)
    const leave = () => viewers.leave(viewer, verified)
    return { hasToken, rights: verified?.rights ?? anonymous, viewer, account, revoked, leave }
  }
}
