// Keeps a session's rights over its life: those of anybody, of its first token, of those that renew it, until it
// expires or is revoked. No session has a timer: the gateway's sweep looks at all whose time has come.
import { type ControlMessage, errorMessage, type RequestId } from '@keycast/protocol'
import type { Viewer } from '../access/backend/viewers.ts'
import { createExpiries, type Expiries } from '../access/expiry.ts'
import type { Verified } from '../access/tokens/tokens.ts'
import type { CloseCode } from '../delivery/outbox.ts'
import type { Session } from './session.ts'

interface Deps {
  rights: { anonymousMayAct: boolean }
  viewers: {
    enter(verified: Verified | undefined): Viewer | undefined
    leave(viewer: Viewer | undefined, verified: Verified | undefined): void
  }
  gate: { reconsider(session: Session): void; changeViewer(session: Session, change: () => void): void }
  outbox: { send(session: Session, message: ControlMessage): void; close(session: Session, code: CloseCode): void }
  accounts: { enter(session: Session, user: string | undefined): void; leave(session: Session): void }
  payerChanged: (session: Session) => void
  isUnread: (session: Session) => boolean
  /** A session that may do nothing must send `auth` within this time. */
  authMs: number
  now: () => number
  wallNow: () => number
}

export function createCredentials({
  rights,
  viewers,
  gate,
  outbox,
  accounts,
  payerChanged,
  isUnread,
  authMs,
  now,
  wallNow,
}: Deps) {
  /** Sessions that have to send `auth`, with when they came, in that order. */
  const unauthenticated = new Map<Session, number>()

  const expiries: Expiries<Session> = createExpiries({
    expired: session => outbox.send(session, errorMessage({ code: 'token_expired' })),
    over: session => outbox.close(session, 'unauthenticated'),
  })

  const expiresInMs = ({ expiresAtMs }: Verified) => Math.max(0, expiresAtMs - wallNow())

  /**
   * A session begins.
   *
   * @param verified the token that its connection came with
   * @returns for its welcome
   */
  function begin(session: Session, verified: Verified | undefined): { user: string; expiresInMs: number } | undefined {
    accounts.enter(session, verified?.user)
    session.viewer = viewers.enter(verified)
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
   * @param verified of the same user, if it has one
   * @param id of the request
   */
  function renew(session: Session, verified: Verified, id: RequestId | undefined) {
    const isSame = session.rights === verified.rights
    const { verified: former, viewer: formerViewer, payer: formerPayer } = session
    session.verified = verified
    session.rights = verified.rights
    session.mustAuth = false
    unauthenticated.delete(session)
    expiries.schedule(session, verified.expiresAtMs)
    accounts.enter(session, verified.user)
    outbox.send(session, { type: 'authed', id, user: verified.user, expiresInMs: expiresInMs(verified) })
    if (session.payer !== formerPayer) payerChanged(session)
    if (!isSame) gate.reconsider(session)
    const viewer = viewers.enter(verified)
    if (viewer !== formerViewer) {
      gate.changeViewer(session, () => {
        session.viewer = viewer
      })
    }
    viewers.leave(formerViewer, former)
  }

  /** The session ended. */
  function forget(session: Session) {
    unauthenticated.delete(session)
    expiries.cancel(session)
    accounts.leave(session)
    viewers.leave(session.viewer, session.verified)
  }

  /** Tells or closes the sessions whose time has come. */
  function sweep() {
    expiries.sweep(wallNow())
    const dueMs = now() - authMs
    for (const [session, openedAtMs] of unauthenticated) {
      if (openedAtMs > dueMs) break
      // Its token may wait to be read, or is being checked, and the result decides.
      if (session.authsPending === 0 && !isUnread(session)) outbox.close(session, 'unauthenticated')
    }
  }

  return { begin, renew, forget, sweep }
}
