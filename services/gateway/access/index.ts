// Puts together what the gate decides by: rights, tokens and their revocation, and for whom backends are asked.
import { type JournalNamespaces, type Namespaces, revocationsRoom, valuesAndRooms, type World } from '@keycast/service'
import type { Counts } from '../counts.ts'
import type { Links } from '../links.ts'
import type { Log } from '../sessions/session-log.ts'
import { createAttempts } from './attempts.ts'
import { createViewers, type Viewer } from './backend/viewers.ts'
import { createExplain } from './explain.ts'
import { createIdentify } from './identify.ts'
import type { Policy } from './policy-file.ts'
import { createRevocations, type Issued } from './revocations/revocations.ts'
import { createRevoke } from './revocations/revoke.ts'
import { createSharedRevocations } from './revocations/shared-revocations.ts'
import { createRights } from './rights.ts'
import { createTokens } from './tokens/tokens.ts'

export type Access = ReturnType<typeof assembleAccess>

interface Handlers {
  /** Nothing of the viewer is to be kept any more. */
  forgotten: (viewer: Viewer) => void
  /** The viewer's own values are to be asked for with another of its tokens. */
  renewed: (viewer: Viewer) => void
  /** One of its tokens is known no more. */
  expired: (viewer: Viewer) => void
  /** Ends the sessions whose tokens are revoked; returns how many there were. */
  endSessions: (isRevoked: (token: Issued) => boolean) => number
  /** Ends those of a client's address, likewise. */
  endAddress: (address: string) => number
}

interface Deps extends Pick<World, 'now' | 'wallNow' | 'after'> {
  settings: { trustedProxies: string }
  namespaces: Namespaces & { journal: JournalNamespaces }
  links: Pick<Links, 'rooms'>
  policy: Policy
  counts: Counts
  log?: Log
}

export function assembleAccess(deps: Deps) {
  const { settings, namespaces, links, policy, counts, log, now, wallNow, after } = deps
  let handlers: Handlers
  const deciding = valuesAndRooms(namespaces)
  const isViewerNeeded = deciding.names.some(
    name => deciding.get(name)?.authorize !== undefined || namespaces.get(name)?.isPerUser,
  )
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
  const shared =
    namespaces.journal.names.length === 0
      ? undefined
      : createSharedRevocations({
          backbone: links.rooms,
          apply: revoke.all,
          endAddress: address => handlers.endAddress(address),
          log,
          after,
          wallNow,
        })

  return {
    rights,
    anonymous: rights.anonymous,
    revocations,
    viewers,
    identify: createIdentify({ tokens, cookie: policy.cookie, trustedProxies: settings.trustedProxies, counts }),
    jwksStatus: tokens.jwksStatus,

    revoke: revoke.one,

    /** Tells the other gateways, and those that start later; absent where there is no journal to keep the list. */
    shareRevocation: shared?.revoke,
    /** Has the other gateways close the sessions of an address, likewise. */
    shareClosing: shared?.close,
    revocationEvents: shared && { room: revocationsRoom, events: shared.events },
    missingRevocations: () => shared?.missing(),

    /** Resolves soon: a user who was signed out must not get in at a gateway that starts. */
    readRevocations: async () => shared?.start(),

    /** Tells an operator why a user may or may not use a key. */
    explaining: (problemOf: Parameters<typeof createExplain>[0]['problemOf']) =>
      createExplain({ policy, rights, tokens, revocations, problemOf, namespaces, deciding, wallNow }),

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
