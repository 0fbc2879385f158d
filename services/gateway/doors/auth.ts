// Says for whom a session is, with a token: as its first message, in place of anonymous rights, or to renew it in place.
import { type Auth, type ControlMessage, errorMessage, type Problem, type RequestId } from '@keycast/protocol'
import type { Peer } from '../access/client-address.ts'
import type { Issued } from '../access/revocations/revocations.ts'
import { tokenRefused } from '../access/tokens/refusal.ts'
import type { Checked, Verified } from '../access/tokens/tokens.ts'
import type { Account } from '../sessions/accounts.ts'
import { OFFENCE_REQUESTS } from '../sessions/rate-limit.ts'
import type { Session } from '../sessions/session.ts'

/** Tokens of one session that may be under verification. More would only wait for each other. */
const PENDING_MAX = 4

/** Rights to each key that a session holds are looked at again: so many count as one more request. */
const KEYS_PER_REQUEST = 10

/** After it an account has its full allowance again. */
const CHANGE_RETRY_MS = 1_000

/** A user with too many sessions or keys is told to come back after this time, in milliseconds. */
const FULL_RETRY_MS = 5_000

interface Deps {
  readonly identify: { verify(token: string, address: string, source: 'message'): Promise<Checked> }
  readonly revocations: { isRevoked(token: Issued): boolean }
  readonly accounts: {
    of(user: string | undefined, peer: Peer): { account: Account | undefined }
    hasRoom(account: Account | undefined, keys: number): boolean
  }
  readonly credentials: { renew(session: Session, verified: Verified, id: RequestId | undefined): void }
  readonly outbox: { send(session: Session, message: ControlMessage): void }
  readonly rateLimit: {
    charge(session: Session, requests: number): number
    chargeAccount(account: Account, requests: number): number
  }
}

export const createAuth = ({ identify, revocations, accounts, credentials, outbox, rateLimit }: Deps) => {
  function auth(session: Session, { id, token }: Auth) {
    if (session.authsPending >= PENDING_MAX) {
      const message = 'too many tokens of this session are being checked: wait for the answers first'
      return outbox.send(session, errorMessage({ code: 'too_many_waiting', message }, { id }))
    }
    session.authsPending++
    const verifying = identify.verify(token, session.address, 'message')
    // The answers apply in the order in which the tokens were sent: the later token wins, however long the earlier
    // took.
    const concluded = Promise.all([verifying, session.lastAuth]).then(([result]) => {
      session.authsPending--
      if (session.authsPending === 0) session.lastAuth = undefined
      if (!session.ended && !session.closing) conclude(session, id, result)
    })
    session.lastAuth = concluded
    return concluded
  }

  function conclude(session: Session, id: Auth['id'], result: Checked) {
    if ('refused' in result) return refuse(session, id, result.refused.problem)
    const { verified } = result
    if (session.verified && session.verified.user !== verified.user) {
      return refuse(session, id, { code: 'other_user' })
    }
    // The token may have been revoked while it waited for the one before it.
    if (revocations.isRevoked(verified)) return refuse(session, id, tokenRefused)
    const { account } = accounts.of(verified.user, session)
    if (!session.verified && !accounts.hasRoom(account, session.subscriptions.size)) {
      const message = 'this user has too many sessions or keys, or sends far too much: close some, or wait'
      return outbox.send(session, errorMessage({ code: 'rate_limited', message, retryAfterMs: FULL_RETRY_MS }, { id }))
    }
    if (!mayChange(session, verified)) {
      return outbox.send(session, errorMessage({ code: 'rate_limited', retryAfterMs: CHANGE_RETRY_MS }, { id }))
    }
    credentials.renew(session, verified, id)
    rateLimit.charge(session, Math.floor(session.subscriptions.size / KEYS_PER_REQUEST))
  }

  /**
   * For another viewer all keys are taken up anew, of which a backend decides or has other values: each costs its account as
   * much as a request. So a user who has tokens for several scopes cannot have thousands taken up without end.
   */
  function mayChange({ viewer, account, subscriptions }: Session, verified: Verified): boolean {
    if (!account || viewer === undefined || viewer.name === verified.viewer) return true
    // The message that brings the token has its own price, so one of all that the account has would never be paid.
    return rateLimit.chargeAccount(account, Math.min(subscriptions.size, account.rates.requests.max / 2)) === 0
  }

  function refuse(session: Session, id: Auth['id'], problem: Problem) {
    outbox.send(session, errorMessage(problem, { id }))
    // No honest client has many tokens refused. A token that could not be checked is not the client's fault.
    if (problem.retryAfterMs === undefined) rateLimit.charge(session, OFFENCE_REQUESTS)
  }

  return auth
}
