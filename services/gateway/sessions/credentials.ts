// Keeps a session's rights over its life: those of anybody, of its first token, of those that renew it, until it
// expires or is revoked. No session has a timer: the gateway's sweep looks at all whose time has come.
import { errorMessage } from '@keycast/protocol'
import { createExpiries } from '../access/expiry.ts'

/**
 * @typedef {import('../access/tokens/tokens.ts').Verified} Verified
 * @typedef {import('./session.ts').Session} Session
 * @typedef {ReturnType<typeof createCredentials>} Credentials
 */

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('../access/rights.ts').createRights>} deps.rights
 * @param {Pick<import('../access/backend/viewers.ts').Viewers, 'of' | 'enter' | 'leave'>} deps.viewers
 * @param {Pick<import('../keys/admissions.ts').Admissions, 'endUncovered' | 'changeViewer'>} deps.admissions
 * @param {Pick<import('../presence/joins.ts').Joins, 'endUncovered' | 'changeViewer'>} deps.joins
 * @param {Pick<import('../delivery/outbox.ts').Outbox, 'send' | 'close'>} deps.outbox
 * @param {Pick<import('./accounts.ts').Accounts, 'of' | 'move'>} deps.accounts
 * @param {number} deps.authMs a session that may do nothing must send `auth` within this time
 * @param {() => number} deps.now monotonic, in milliseconds
 * @param {() => number} deps.wallNow in milliseconds since 1970
 */
export function createCredentials({ rights, viewers, admissions, joins, outbox, accounts, authMs, now, wallNow }) {
  /** Sessions that have to send `auth`, with when they came, in that order. @type {Map<Session, number>} */
  const unauthenticated = new Map()

  /** @type {import('../access/expiry.ts').Expiries<Session>} */
  const expiries = createExpiries({
    expired: session => outbox.send(session, errorMessage('token_expired')),
    over: session => outbox.close(session, 'unauthenticated'),
  })

  /** @param {Verified} verified */
  const expiresInMs = ({ expiresAtMs }) => Math.max(0, expiresAtMs - wallNow())

  /**
   * A session begins.
   *
   * @param {Session} session
   * @param {Verified | undefined} verified the token that its connection came with
   * @returns {{ user: string, expiresInMs: number } | undefined} for its welcome
   */
  function begin(session, verified) {
    accounts.move(session, accounts.of(verified?.user, session))
    enter(session, viewers.of(verified))
    if (verified) {
      session.verified = verified
      session.rights = verified.rights
      expiries.schedule(session, verified.expiresAtMs)
      return { user: verified.user, expiresInMs: expiresInMs(verified) }
    }
    session.mustAuth = !rights.anonymousMayAct
    if (session.mustAuth) unauthenticated.set(session, now())
    return undefined
  }

  /**
   * A session has another token: the first one, or one that renews it. Subscriptions that it does not cover end.
   *
   * @param {Session} session
   * @param {Verified} verified of the same user, if it has one
   * @param {import('@keycast/protocol').RequestId | undefined} id of the request
   */
  function renew(session, verified, id) {
    const isSame = session.rights === verified.rights
    session.verified = verified
    session.rights = verified.rights
    session.mustAuth = false
    unauthenticated.delete(session)
    expiries.schedule(session, verified.expiresAtMs)
    accounts.move(session, accounts.of(verified.user, session))
    outbox.send(session, { type: 'authed', id, user: verified.user, expiresInMs: expiresInMs(verified) })
    if (!isSame) {
      joins.endUncovered(session)
      admissions.endUncovered(session)
    }
    const viewer = viewers.of(verified)
    if (viewer === session.viewer) return
    joins.changeViewer(session, () => admissions.changeViewer(session, () => enter(session, viewer)))
  }

  /** @param {Session} session @param {Session['viewer']} viewer */
  function enter(session, viewer) {
    viewers.leave(session.viewer)
    session.viewer = viewer
    viewers.enter(viewer)
  }

  /** The session ended. @param {Session} session */
  function forget(session) {
    unauthenticated.delete(session)
    expiries.cancel(session)
    accounts.move(session, undefined)
    viewers.leave(session.viewer)
  }

  /** Tells or closes the sessions whose time has come. */
  function sweep() {
    expiries.sweep(wallNow())
    const dueMs = now() - authMs
    for (const [session, openedAtMs] of unauthenticated) {
      if (openedAtMs > dueMs) break
      // Its token is being checked, and the result decides.
      if (session.authsPending === 0) outbox.close(session, 'unauthenticated')
    }
  }

  return { begin, renew, forget, sweep }
}
