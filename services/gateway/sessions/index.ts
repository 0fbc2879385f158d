// Puts sessions together: how they begin, what they may ask for, how they end.
import { type Containment, type JournalNamespaces, revocationsRoom } from '@keycast/service'
import type { Access } from '../access/index.ts'
import { createSharedRevocations } from '../access/revocations/shared-revocations.ts'
import type { Counts } from '../counts.ts'
import type { Outbox } from '../delivery/outbox.ts'
import { chooseSubprotocol, createEncodings } from '../encodings/index.ts'
import type { Gate } from '../gate/gate.ts'
import type { Links } from '../links.ts'
import type { Settings } from '../settings.ts'
import type { TopicsPart } from '../topics/index.ts'
import { createAccept } from '../transport/accept.ts'
import { createAccounts } from './accounts.ts'
import { createCredentials } from './credentials.ts'
import { drain } from './drain.ts'
import { createEndRevoked } from './end-revoked.ts'
import { createHeartbeat } from './heartbeat.ts'
import { createOpen } from './open.ts'
import { createRateLimit } from './rate-limit.ts'
import { createReceive } from './receive.ts'
import { createSessionLog, type Log } from './session-log.ts'
import { createSessions } from './sessions.ts'
import { createUnfinished } from './unfinished.ts'
import { createUpgrades } from './upgrade.ts'

export type SessionsPart = ReturnType<typeof assembleSessions>

interface Deps {
  settings: Settings
  namespaces: { journal: JournalNamespaces }
  links: Pick<Links, 'rooms'>
  access: Access
  gate: Pick<Gate, 'endUncovered' | 'changeViewer' | 'giveUp'>
  topics: Pick<TopicsPart, 'topics' | 'joins' | 'latest' | 'grown'>
  outbox: Outbox
  histograms: { compressed(ms: number): void }
  containment: Pick<Containment, 'guard'>
  counts: Counts
  log?: Log
  /** Monotonic, in milliseconds. */
  now: () => number
  /** In milliseconds since 1970. */
  wallNow: () => number
}

export function assembleSessions(deps: Deps) {
  const { settings, namespaces, links, access, gate, outbox, histograms, containment, counts, log, now, wallNow } = deps
  const { topics, joins, latest, grown } = deps.topics
  const { identify, revocations, viewers, rights } = access
  const { messageBytesMax, keysPerSessionMax, requestsPerSecondMax, heartbeatMs, compression, sessionsMax } = settings
  let isDraining = false

  const accounts = createAccounts({ ...settings, now })
  const credentials = createCredentials({
    rights,
    viewers,
    gate,
    outbox,
    accounts,
    authMs: settings.authMs,
    now,
    wallNow,
  })
  const unfinished = createUnfinished({ messageBytesMax })
  const sessionLog = createSessionLog({ log, now })
  const sessions = createSessions({
    outbox,
    topics,
    joins,
    gate,
    credentials,
    unfinished,
    sessionLog,
    containment,
    counts,
  })
  const endRevoked = createEndRevoked({ revocations, sessions, viewers })
  const shared =
    namespaces.journal.names.length === 0
      ? undefined
      : createSharedRevocations({ backbone: links.rooms, apply: endRevoked.addAll, log })
  const rateLimit = createRateLimit({ requestsPerSecondMax, keysPerSessionMax, accounts, end: sessions.end, now })
  const receive = createReceive({ outbox, rateLimit })
  const encodings = createEncodings({
    latest,
    grown,
    resume: outbox.resume,
    counts,
    observe: histograms.compressed,
    now,
  })
  const open = createOpen({
    sessions,
    encodings,
    receive,
    unfinished,
    outbox,
    credentials,
    anonymous: rights.anonymous,
    rateLimit,
    containment,
    welcome: {
      heartbeatMs,
      limits: {
        messageBytes: messageBytesMax,
        keysPerSession: keysPerSessionMax,
        requestsPerSecond: requestsPerSecondMax,
      },
    },
  })
  const heartbeat = createHeartbeat({
    slices: sessions.slices,
    periodMs: heartbeatMs,
    outbox,
    terminate: session => sessions.terminate(session, 'silent'),
    now,
  })
  const upgrades = createUpgrades({
    accept: createAccept({ messageBytesMax, compression, chooseSubprotocol }),
    open,
    identify,
    revocations,
    accounts,
    sessionCount: sessions.size,
    isDraining: () => isDraining,
    sessionsMax,
    origins: settings.origins,
    containment,
    counts,
    log,
    now,
  })

  return {
    accounts,
    credentials,
    rateLimit,
    end: sessions.end,

    /** Makes a session of one connection, as an upgrade does. */
    open,

    /** Makes sessions of the server's upgrades. */
    attach: upgrades.attach,

    /** See end-revoked.ts. */
    revoke: endRevoked.add,

    /** Tells the other gateways, and those that start later; absent where there is no journal to keep the list. */
    shareRevocation: shared?.publish,
    revocationEvents: shared && { room: revocationsRoom, events: shared.events },
    missingRevocations: () => shared?.missing(),

    /**
     * The reason why no client should be sent here, or `undefined`. A lost fetcher is no reason: all gateways would
     * turn clients down at once, although they can serve the values in their memory and say how old these are.
     */
    notReady() {
      if (isDraining) return 'draining'
      return sessions.size() >= sessionsMax ? 'full: all sessions of GATEWAY_SESSIONS_MAX are taken' : undefined
    },

    start: receive.start,

    async serve() {
      // Awaited, but not for long: a user who was signed out must not get in at a gateway that starts.
      await shared?.start()
      heartbeat.start()
    },

    /** Sends all clients to other gateways. The listener is closed by then: otherwise the same clients come back. */
    async drain() {
      isDraining = true
      await drain({ sessions, outbox, spreadMs: settings.drainMs })
    },

    stop() {
      heartbeat.stop()
      shared?.stop()
    },

    sweep: credentials.sweep,
    sweepSeldom: accounts.sweep,
    stats: () => ({ sessions: sessions.size() }),
  }
}
