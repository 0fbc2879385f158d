// Puts together what the gate decides by: rights, tokens and their revocation, and for whom backends are asked.
import { type AllNamespaces, needsJournal, type World } from '@keycast/service'
import type { Counts } from '../counts.ts'
import type { Links } from '../links.ts'
import type { Log } from '../sessions/session-log.ts'
import type { Change } from './backend/decisions.ts'
import { createViewers, type Viewer } from './backend/viewers.ts'
import { createExplain } from './explain.ts'
import { createIdentify } from './identify.ts'
import type { Policy } from './policy-file.ts'
import { createRevocations, type Issued } from './revocations/revocations.ts'
import { createRevoke } from './revocations/revoke.ts'
import { createSharedRevocations } from './revocations/shared-revocations.ts'
import { createRights } from './rights.ts'
import { createAttempts } from './token-attempts.ts'
import { createTokens, type Verified } from './tokens/tokens.ts'

export type Access = ReturnType<typeof assembleAccess>

interface Handlers {
  /** Nothing of the viewer is to be kept any more. */
  forgotten: (viewer: Viewer) => void
  /** The viewer's own values are to be asked for with another of its tokens. */
  renewed: (viewer: Viewer) => void
  /** One of its tokens is known no more. */
  expired: (viewer: Viewer) => void
  /** Ends the sessions whose tokens are good no more; returns how many there were. */
  endSessions: (isOver: (token: Verified) => boolean) => number
  /** Ends those of a client's address, likewise. */
  endAddress: (address: string) => number
  /** Has backends asked again; returns how many decisions that concerns. */
  askAgain: (change: Change) => number
}

interface Deps extends Pick<World, 'now' | 'wallNow' | 'after'> {
  settings: { trustedProxies: string }
  namespaces: AllNamespaces
  links: Pick<Links, 'rooms'>
  /** In force; {@link takeOver} changes it. */
  policy: Policy
  counts: Counts
  log?: Log
}

export function assembleAccess(deps: Deps) {
  const { settings, namespaces, links, policy, counts, log, now, wallNow, after } = deps
  let handlers: Handlers
  const isViewerNeeded = asksForViewers(namespaces)
  const rights = createRights(policy)
  const revocations = createRevocations({ lifetimeMsMax: policy.lifetimeMsMax, now: wallNow })
  const tokens = createTokens({
    policy,
    rights,
    revocations,
    attempts: createAttempts({ now }),
    now,
    wallNow,
    log,
    keepTokens: isViewerNeeded,
  })
  const viewers = createViewers({
    isNeeded: isViewerNeeded,
    onForgotten: viewer => handlers.forgotten(viewer),
    onRenewed: viewer => handlers.renewed(viewer),
    onExpired: viewer => handlers.expired(viewer),
    now,
    wallNow,
  })
  const revoke = createRevoke({ revocations, viewers, endSessions: isRevoked => handlers.endSessions(isRevoked) })
  const shared = !needsJournal(namespaces)
    ? undefined
    : createSharedRevocations({
        backbone: links.rooms,
        apply: revoke.all,
        endAddress: address => handlers.endAddress(address),
        askAgain: change => handlers.askAgain(change),
        log,
        after,
        wallNow,
      })

  return {
    rights,
    anonymous: rights.anonymous,
    /** To be asked of a token that was verified a while ago. */
    revocations: {
      isRevoked: (token: Issued & Pick<Verified, 'signedBy'>) =>
        revocations.isRevoked(token) || !tokens.isAccepted(token),
    },
    viewers,
    identify: createIdentify({ tokens, policy, trustedProxies: settings.trustedProxies, counts }),
    jwksStatus: tokens.jwksStatus,

    revoke: revoke.one,

    /** Tells the other gateways, and those that start later; absent where there is no journal to keep the list. */
    shareRevocation: shared?.revoke,
    /** Has the other gateways close the sessions of an address, likewise. */
    shareClosing: shared?.close,
    /** Has the other gateways ask backends again, likewise. */
    shareAsking: shared?.ask,
    reservedEvents: shared?.events,
    missingRevocations: () => shared?.missing(),

    /** Resolves soon: a user who was signed out must not get in at a gateway that starts. */
    readRevocations: async () => shared?.start(),

    /** Tells an operator why a user may or may not use a key. */
    explaining: (problemOf: Parameters<typeof createExplain>[0]['problemOf']) =>
      createExplain({ policy, rights, tokens, revocations, problemOf, namespaces: namespaces.all, wallNow }),

    /** Why another keycast.yaml cannot be taken over by a gateway that runs; a line each. */
    problemsOf(next: AllNamespaces, { lifetimeMsMax }: Policy): string[] {
      const problems: string[] = []
      if (asksForViewers(next) && !isViewerNeeded) {
        problems.push(
          'no namespace had authorize or per: user, so gateways kept no tokens to ask backends with: restart them',
        )
      }
      for (const source of ['journal', 'pushed'] as const) {
        if (next[source].names.length > 0 === namespaces[source].names.length > 0) continue
        problems.push(
          `the first namespace with source: ${source} comes, and the last one goes, with a restart of gateways`,
        )
      }
      if (lifetimeMsMax !== policy.lifetimeMsMax) {
        problems.push('access.maxLifetime cannot change while gateways run: revocations are kept by it. Restart them')
      }
      return problems
    },

    /** From now on these rules hold. Sessions whose tokens are good no more end; those that stay are the gate's. */
    takeOver(next: Policy) {
      const kept = policy.notes
      Object.assign(policy, next)
      for (const note of policy.notes) if (!kept.includes(note)) log?.warn(note)
      rights.renew()
      tokens.renew()
      const isOver = (token: Pick<Verified, 'signedBy'>) => !tokens.isAccepted(token)
      handlers.endSessions(isOver)
      viewers.revoke(isOver, [])
    },

    start(given: Handlers) {
      handlers = given
    },
    open: tokens.start,
    close() {
      shared?.stop()
      tokens.stop()
    },

    /** Walks over all there is: seldom. */
    sweep() {
      revocations.sweep()
      viewers.sweep()
    },

    stats: () => ({ revocations: revocations.size }),
  }
}

/** Whether some backend is asked with viewers' own tokens. */
function asksForViewers({ all, fetched }: AllNamespaces) {
  return all.names.some(name => all.get(name)?.authorize !== undefined || fetched.get(name)?.isPerUser === true)
}
