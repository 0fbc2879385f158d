// Finds the user of an HTTP request and charges the request to that user's allowance, as an upgrade and a session do.
// For code that polls.
import type { IncomingMessage } from 'node:http'
import type { Problem } from '@keycast/protocol'
import type { Payer } from '@keycast/service'
import type { Viewer } from '../../access/backend/viewers.ts'
import type { Peer } from '../../access/client-address.ts'
import type { Issued } from '../../access/revocations/revocations.ts'
import type { Rights } from '../../access/rights.ts'
import { tokenRefused } from '../../access/tokens/refusal.ts'
import type { Checked, Verified } from '../../access/tokens/tokens.ts'
import type { Account } from '../../sessions/accounts.ts'
import type { Paying } from '../../topics/values/payer-choice.ts'
import type { HttpProblem } from './problems.ts'

export type Authenticate = ReturnType<typeof createAuthenticate>

interface Deps {
  identify: {
    peerOf(request: IncomingMessage): Peer
    verifyRequest(request: IncomingMessage, address: string): Promise<Checked> | undefined
  }
  anonymous: Rights
  viewers: {
    enter(verified: Verified | undefined): Viewer | undefined
    leave(viewer: Viewer | undefined, verified: Verified | undefined): void
  }
  accounts: { of(user: string | undefined, peer: Peer): Paying }
  rateLimit: { chargeAccount(account: Account | undefined, requests: number): number }
  revocations: { isRevoked(token: Issued): boolean }
}

export function createAuthenticate({ identify, anonymous, viewers, accounts, rateLimit, revocations }: Deps) {
  /**
   * @returns `revoked`: ask it before anything is sent, because the token may have been revoked while the request
   *   waited
   */
  return async function authenticate(request: IncomingMessage): Promise<
    { hasToken: boolean } & (
      | {
          /** The token, if one came. */
          verified: Verified | undefined
          rights: Rights
          viewer: Viewer | undefined
          account: Account | undefined
          payer: Payer | undefined
          revoked: () => Problem | undefined
          leave: () => void
        }
      | { problem: HttpProblem }
    )
  > {
    const peer = identify.peerOf(request)
    const result = await identify.verifyRequest(request, peer.address)
    const hasToken = result !== undefined
    if (result && 'refused' in result) return { hasToken, problem: result.refused.problem }
    const verified = result?.verified
    const { account, payer } = accounts.of(verified?.user, peer)
    const retryAfterMs = rateLimit.chargeAccount(account, 1)
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
    return { hasToken, verified, rights: verified?.rights ?? anonymous, viewer, account, payer, revoked, leave }
  }
}
