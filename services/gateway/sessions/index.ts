// Puts sessions together: how they begin, what they may ask for, how they end.
import type { Leaving } from '@keycast/backbone'
import type { Containment, World } from '@keycast/service'
import { limitKeyOf, plain } from '../access/client-address.ts'
import type { Access } from '../access/index.ts'
import type { Policy } from '../access/policy-file.ts'
import type { Counts } from '../counts.ts'
import type { Outbox } from '../delivery/outbox.ts'
import { chooseSubprotocol, type Encodings } from '../encodings/index.ts'
import type { GatePart } from '../gate/index.ts'
import type { Settings } from '../settings.ts'
import type { TopicsPart } from '../topics/index.ts'
import { createAccept } from '../transport/websocket-server.ts'
import { createAccounts } from './accounts.ts'
import { createAdmission } from './admission.ts'
import { readOrigins } from './allowed-origins.ts'
import { createCredentials } from './credentials.ts'
import { drain } from './drain.ts'
import { createHeartbeat } from './heartbeat.ts'
import { createOpen } from './open.ts'
import { createRateLimit } from './rate-limit.ts'
import { createReadingTurns } from './reading-turns.ts'
import { createReceive } from './receive.ts'
import type { Session } from './session.ts'
import { createSessionLog, type Log } from './session-log.ts'
import { createSessions } from './sessions.ts'
import { createUnfinished } from './unfinished-messages.ts'
import { createUpgrades } from './upgrade.ts'

export type SessionsPart = ReturnType<typeof assembleSessions>

interface Deps extends World {
  settings: Settings
  policy: Pick<Policy, 'tokens'>
  access: Access
  gate: GatePart
  topics: TopicsPart
  encodings: Encodings
  outbox: Outbox
  containment: Pick<Containment, 'guard'>
  counts: Counts
  log?: Log
}

export function assembleSessions(deps: Deps) {
  const { settings, policy, access, gate, outbox } = deps
  const { topics, joins } = deps.topics
  const { messageBytesMax, keysPerSessionMax, requestsPerSecondMax, heartbeatMs, sessionsMax } = settings
  let isDraining = false

  const accounts = createAccounts({
    ...deps,
    ...settings,
    accountsSecret: settings.backboneServerKey ?? '',
    hasUsers: () => policy.tokens.length > 0,
  })
  const unfinished = createUnfinished({ messageBytesMax })
  const readingTurns = createReadingTurns(deps)
  const credentials = createCredentials({
    ...deps,
    ...deps.topics,
    ...access,
    ...readingTurns,
    accounts,
    authMs: settings.authMs,
  })

  function discard(session: Session) {
    outbox.discard(session)
    unfinished.forget(session)
    readingTurns.forget(session)
  }

  /**
   * All else that the parts hold of a session that ended: some of it, then the rest.
   *
   * @param leaving the rooms that it joined
   * @returns whether there is more
   */
  function takeBack(session: Session, leaving: Leaving): boolean {
    if (topics.dropSome(session)) return true
    joins.drop(session, leaving)
    gate.giveUp(session)
    credentials.forget(session)
    return false
  }

  const sessions = createSessions({ ...deps, discard, takeBack, sessionLog: createSessionLog(deps) })
  const rateLimit = createRateLimit({ ...deps, ...settings, end: sessions.end })
  const receive = createReceive({ outbox, rateLimit })
  const open = createOpen({
    ...deps,
    sessions,
    receive,
    readingTurns,
    unfinished,
    credentials,
    anonymous: access.anonymous,
    rateLimit,
    welcome: {
      heartbeatMs,
      limits: {
        messageBytes: messageBytesMax,
        keysPerSession: keysPerSessionMax,
        requestsPerSecond: requestsPerSecondMax,
      },
    },
  })

  function unready() {
    if (isDraining) return 'draining'
    return sessions.size() >= sessionsMax ? 'full' : undefined
  }

  const heartbeat = createHeartbeat({
    ...deps,
    ...readingTurns,
    slices: sessions.slices,
    periodMs: heartbeatMs,
    terminate: session => sessions.terminate(session, 'silent'),
  })
  const isAllowedOrigin = readOrigins(settings.origins)
  const admission = createAdmission({ ...deps, ...access, accounts, unready, sessionsMax, isAllowedOrigin })
  const accept = createAccept({ ...settings, chooseSubprotocol })
  const upgrades = createUpgrades({ ...deps, accept, open, admission })

  return {
    accounts,
    admission,
    credentials,
    rateLimit,
    end: sessions.end,

    /** Makes a session of one connection, as an upgrade and an event stream do. */
    open,

    /** Makes sessions of the server's upgrades. */
    attach: upgrades.attach,

    /** Each session there is, also while others come and go. */
    all: sessions.all,
    endRevoked: sessions.endRevoked,
    /** @param address of clients @returns how many sessions were ended */
    endAddress: (address: string) => sessions.endAddress(limitKeyOf(plain(address))),

    /**
     * The reason why no client should be sent here, or `undefined`. A lost fetcher is no reason: all gateways would
     * turn clients down at once, although they can serve the values in their memory and say how old these are.
     */
    notReady() {
      const why = unready()
      return why === 'full' ? 'full: all sessions of GATEWAY_SESSIONS_MAX are taken' : why
    },

    start: receive.start,

    serve: heartbeat.start,

    /** Sends all clients to other gateways. The listener is closed by then: otherwise the same clients come back. */
    async drain() {
      isDraining = true
      await drain({ ...deps, sessions, spreadMs: settings.drainMs })
    },

    stop: heartbeat.stop,

    sweep: credentials.sweep,
    sweepSeldom: accounts.sweep,
    stats: () => ({ sessions: sessions.size() }),
  }
}
