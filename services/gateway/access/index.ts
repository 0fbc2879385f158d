// Puts together what the gate decides by: rights, tokens and their revocation, and for whom backends are asked.
import { type JournalNamespaces, type Namespaces, valuesAndRooms } from '@keycast/service'
import type { Counts } from '../counts.ts'
import { createAttempts } from './attempts.ts'
import { createViewers, type Viewer } from './backend/viewers.ts'
import { createExplain } from './explain.ts'
import { createIdentify } from './identify.ts'
import type { Policy } from './policy-file.ts'
import { createRevocations } from './revocations/revocations.ts'
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
}

interface Deps {
  settings: { trustedProxies: string }
  namespaces: Namespaces & { journal: JournalNamespaces }
  policy: Policy
  /** For the log. */
  jwksEvents?: Parameters<typeof createTokens>[0]['jwksEvents']
  counts: Counts
  /** Monotonic, in milliseconds. */
  now: () => number
  /** In milliseconds since 1970. */
  wallNow: () => number
}

export function assembleAccess({ settings, namespaces, policy, jwksEvents, counts, now, wallNow }: Deps) {
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
    jwksEvents,
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

  return {
    rights,
    anonymous: rights.anonymous,
    revocations,
    viewers,
    identify: createIdentify({ tokens, cookie: policy.cookie, trustedProxies: settings.trustedProxies, counts }),
    jwksStatus: tokens.jwksStatus,

    /** Tells an operator why a user may or may not use a key. */
    explaining: (problemOf: Parameters<typeof createExplain>[0]['problemOf']) =>
      createExplain({ policy, rights, tokens, revocations, problemOf, namespaces, deciding, wallNow }),

    start(given: Handlers) {
      handlers = given
    },
    open: tokens.start,
    close: tokens.stop,

    /** Walks over all there is: seldom. */
    sweep() {
      revocations.sweep()
      viewers.sweep()
    },

    stats: () => ({ revocations: revocations.size }),
  }
}
