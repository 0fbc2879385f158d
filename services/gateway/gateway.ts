// Puts a gateway together from its parts. main.js gives it the real world, tests give it theirs.
import type { Server } from 'node:http'
import type { Backbone, BackboneEvents, RoomsBackbone, RoomsEvents } from '@keycast/backbone'
import {
  type Containment,
  createCalendar,
  createTurns,
  type JournalNamespaces,
  type Metrics,
  type Namespaces,
  SWEEP_MS,
  valuesAndRooms,
  workTurn,
} from '@keycast/service'
import { createAttempts } from './access/attempts.ts'
import { createViewers } from './access/backend/viewers.ts'
import { createExplain } from './access/explain.ts'
import { createIdentify } from './access/identify.ts'
import type { Policy } from './access/policy-file.ts'
import { createRevocations } from './access/revocations/revocations.ts'
import { createRights } from './access/rights.ts'
import { createTokens } from './access/tokens/tokens.ts'
import { createCounts } from './counts.ts'
import { createOutbox, type OutboxEvents } from './delivery/outbox.ts'
import { createSlowClients } from './delivery/slow-clients.ts'
import { createAuthenticate } from './doors/http/authenticate.ts'
import { createHandlers } from './doors/index.ts'
import { chooseSubprotocol, createEncodings, valueBytes } from './encodings/index.ts'
import { assembleGate } from './gate/index.ts'
import { createHistograms, exportCounts } from './metrics.ts'
import { createAccounts } from './sessions/accounts.ts'
import { createCredentials } from './sessions/credentials.ts'
import { drain } from './sessions/drain.ts'
import { createEndRevoked } from './sessions/end-revoked.ts'
import { createHeartbeat } from './sessions/heartbeat.ts'
import { createOpen } from './sessions/open.ts'
import { createRateLimit } from './sessions/rate-limit.ts'
import { createReceive } from './sessions/receive.ts'
import { createSessionLog, type Log } from './sessions/session-log.ts'
import { createSessions } from './sessions/sessions.ts'
import { createUnfinished } from './sessions/unfinished.ts'
import { createUpgrades } from './sessions/upgrade.ts'
import type { Settings } from './settings.ts'
import { assembleRooms } from './topics/rooms/assemble.ts'
import { createNoJournal } from './topics/rooms/no-journal.ts'
import { createTails } from './topics/rooms/tails.ts'
import { createTopics } from './topics/topics.ts'
import { createCache } from './topics/values/cache.ts'
import type { Entry } from './topics/values/entry.ts'
import { createOwnValueTokens } from './topics/values/own-value-tokens.ts'
import { createOwnValues } from './topics/values/own-values.ts'
import { createSingleFlight } from './topics/values/single-flight.ts'
import { createStaleness } from './topics/values/staleness.ts'
import { createSubscriptions } from './topics/values/subscriptions.ts'
import { createTakeAnswer } from './topics/values/take-answer.ts'
import { createValues } from './topics/values/values.ts'
import { createAccept } from './transport/accept.ts'

type ViewerEvents = Pick<Parameters<typeof createViewers>[0], 'onForgotten' | 'onRenewed' | 'onExpired'>

export type GatewaySettings = Pick<
  Settings,
  | 'sessionsMax'
  | 'keysPerSessionMax'
  | 'subscriptionsMax'
  | 'requestsPerSecondMax'
  | 'messageBytesMax'
  | 'getsWaitingMax'
  | 'unsentBytesMax'
  | 'unsentTotalBytesMax'
  | 'stallMsMax'
  | 'heartbeatMs'
  | 'cacheBytesMax'
  | 'drainMs'
  | 'origins'
  | 'compression'
  | 'sessionsPerUserMax'
  | 'sessionsPerAddressMax'
  | 'trustedProxies'
  | 'authMs'
  | 'tailBytesMax'
  | 'publishMs'
  | 'publishesPendingMax'
>

/** The interval at which revocations and accounts are swept. */
const SWEEP_SELDOM_MS = 10_000

interface Deps {
  settings: GatewaySettings
  namespaces: Namespaces & { journal: JournalNamespaces }
  /** The `access` section of keycast.yaml. */
  policy: Policy
  createBackbone: (events: BackboneEvents) => Backbone
  /** For the namespaces of rooms; absent if there are none. */
  createRoomsBackbone?: (events: RoomsEvents) => RoomsBackbone
  metrics: Pick<Metrics, 'counter' | 'gauge' | 'histogram' | 'fastHistogram'>
  log?: Log
  containment: Pick<Containment, 'guard'>
  /** For the log. */
  jwksEvents?: Parameters<typeof createTokens>[0]['jwksEvents']
  /** Monotonic, in milliseconds. */
  now?: () => number
  /** In milliseconds since 1970, as tokens tell the time. */
  wallNow?: () => number
}

export function createGateway({
  settings,
  namespaces,
  policy,
  createBackbone,
  createRoomsBackbone = createNoJournal,
  metrics,
  jwksEvents,
  containment,
  log,
  now = () => performance.now(),
  wallNow = Date.now,
}: Deps) {
  const { keysPerSessionMax, requestsPerSecondMax, getsWaitingMax, messageBytesMax, heartbeatMs } = settings
  let isDraining = false

  // Each part is given parts that were built before it. Some events go the other way: the backbones and the outbox, which
  // most parts need, report to parts that need them. They are named here and tied at the end, before anything can happen.
  // One object in one place, so that no part closes over another that does not exist yet.
  const events: BackboneEvents & RoomsEvents & OutboxEvents & ViewerEvents = {
    held: untied,
    onAnswer: untied,
    onHead: untied,
    onMessages: untied,
    onGap: untied,
    onFailed: untied,
    onRouted: untied,
    onMembers: untied,
    onPresence: untied,
    onEnd: untied,
    onWritable: untied,
    onForgotten: untied,
    onRenewed: untied,
    onExpired: untied,
  }

  const counts = createCounts()
  const histograms = createHistograms(metrics)

  // access: who may read what
  const rights = createRights(policy)
  const revocations = createRevocations({ lifetimeMsMax: policy.lifetimeMsMax, now: wallNow })
  const attempts = createAttempts({ now })
  const deciding = valuesAndRooms(namespaces)
  const isViewerNeeded = deciding.names.some(
    name => deciding.get(name)?.authorize !== undefined || namespaces.get(name)?.isPerUser,
  )
  const keepTokens = isViewerNeeded
  const tokens = createTokens({ policy, rights, revocations, attempts, now, wallNow, jwksEvents, keepTokens })
  const { cookie } = policy
  const identify = createIdentify({ tokens, cookie, trustedProxies: settings.trustedProxies, counts })
  const accounts = createAccounts({ ...settings, now })
  const viewers = createViewers({
    isNeeded: isViewerNeeded,
    onForgotten: viewer => events.onForgotten(viewer),
    onRenewed: viewer => events.onRenewed(viewer),
    onExpired: viewer => events.onExpired(viewer),
    now,
    wallNow,
  })

  // keys: what is known of them, and how the fetcher is asked
  const calendar = createCalendar<Entry>()
  const ownValues = createOwnValues({ namespaces, viewers, wallNow })
  const cache = createCache({
    bytesMax: settings.cacheBytesMax,
    valueBytes,
    onUnwanted: calendar.cancel,
    mayKeep: ownValues.mayKeep,
    onRemoved: ownValues.removed,
  })
  const backbone = createBackbone({
    held: key => events.held(key),
    credentials: key => ownValues.credentialsFor(cache.peek(key)),
    onAnswer: (...of) => events.onAnswer(...of),
  })
  const gate = assembleGate({ settings, namespaces, deciding, cache, backbone, ownValues, counts, now, wallNow })
  const staleness = createStaleness({ calendar, backbone, now })

  // delivery: what sessions are written, and when
  const slowClients = createSlowClients({ ...settings, now })
  const tails = createTails({ bytesMax: settings.tailBytesMax, now })
  const { unsentBytesMax } = settings
  const outbox = createOutbox({ events, slowClients, unsentBytesMax, containment, counts, now })
  const subscriptions = createSubscriptions({
    gate,
    cache,
    backbone,
    outbox,
    staleness,
    onFanOut,
    counts,
    now,
  })
  const { kind } = subscriptions
  const values = createValues({ namespaces, cache, backbone, kind, onOpened: ownValues.opened, now })
  const singleFlight = createSingleFlight({ values, cache, backbone, calendar, counts, now })
  const ownValueTokens = createOwnValueTokens({ ownValues, cache, backbone, subscriptions, now })
  const takeAnswer = createTakeAnswer({ cache, backbone, ownValues, values, singleFlight, subscriptions, now })
  const encodings = createEncodings({
    latest: key => cache.peek(key)?.value,
    grown(key) {
      const entry = cache.peek(key)
      if (entry) cache.update(entry)
    },
    resume: outbox.resume,
    counts,
    observe: histograms.compressed,
    now,
  })

  // rooms: their messages, who follows them, who publishes
  const { roomsBackbone, sharedRevocations, watching, rooms, histories, publishes, joins } = assembleRooms({
    namespaces: namespaces.journal,
    createRoomsBackbone,
    events,
    applyRevocations: revokeAll,
    gate,
    tails,
    outbox,
    settings,
    containment,
    counts,
    log,
    now,
  })
  const topics = createTopics({ gate, values, rooms, outbox })

  // sessions: how they begin, what they ask, how they end
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
  const sessions = createSessions({
    outbox,
    topics,
    joins,
    gate,
    credentials,
    unfinished,
    sessionLog: createSessionLog({ log, now }),
    containment,
    counts,
  })
  const endRevoked = createEndRevoked({ revocations, sessions, viewers })
  const rateLimit = createRateLimit({ requestsPerSecondMax, keysPerSessionMax, accounts, end: sessions.end, now })
  const handlers = createHandlers({
    gate,
    identify,
    revocations,
    accounts,
    credentials,
    values,
    singleFlight,
    topics,
    subscriptions,
    rooms,
    publishes,
    histories,
    joins,
    outbox,
    rateLimit,
    getsWaitingMax,
    containment,
    counts,
    now,
  })
  const receive = createReceive({ handle: handlers.handle, outbox, rateLimit })
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
    accept: createAccept({ messageBytesMax, compression: settings.compression, chooseSubprotocol }),
    open,
    identify,
    revocations,
    accounts,
    sessionCount: sessions.size,
    isDraining: () => isDraining,
    sessionsMax: settings.sessionsMax,
    origins: settings.origins,
    containment,
    counts,
    log,
    now,
  })

  events.held = values.held
  events.onAnswer = takeAnswer
  Object.assign(events, rooms.events, watching.events)
  events.onEnd = sessions.end
  events.onWritable = handlers.resumeGets
  gate.start({ subscribe: topics.holder, join: joins })
  events.onForgotten = viewer => {
    gate.forget(viewer)
    ownValueTokens.ended(viewer)
  }
  events.onRenewed = ownValueTokens.renewed
  events.onExpired = ownValueTokens.expired

  exportCounts(metrics, counts, stats, tokens.jwksStatus, settings, () => sharedRevocations?.missing())

  /** With a million keys many thousands come up at one time: what the first turn leaves is looked at in later ones. */
  const looks = createTurns({ now, step: lookAtNext })

  /** @returns whether there may be more to look at */
  function lookAtNext(): boolean {
    const entry = calendar.takeDue(now())
    if (!entry) return false
    singleFlight.expire(entry)
    subscriptions.check(entry)
    return true
  }

  let sweeper: NodeJS.Timeout | undefined
  let sweptSeldomAtMs = now()

  /** The problem of a key itself, be it of a value or of a room. @param key anything an operator sent */
  const problemOf = (key: string) => gate.operator(rooms.isRoom(key) ? 'room' : 'value', key)

  function onFanOut({ value, askedAtMs }: Entry) {
    const startMs = now()
    if (value) value.receivedAtMs = startMs
    outbox.fence(() => histograms.delivered({ startMs, endMs: now(), askedAtMs, delayMs: value?.delayMs }))
  }

  /** @param given those that other gateways were called for */
  function revokeAll(given: Parameters<typeof endRevoked.addAll>[0]) {
    return endRevoked.addAll(given)
  }

  function stats() {
    const { bytes: cacheBytes, entries: cacheEntries } = cache.stats()
    return {
      sessions: sessions.size(),
      stalled: slowClients.size(),
      ...gate.stats(),
      ...subscriptions.stats(),
      ...topics.stats(),
      ...ownValues.stats(),
      ...rooms.stats(),
      ...watching.stats(),
      journalNodesAlive: roomsBackbone.nodesAlive(),
      journalLogs: roomsBackbone.logs(),
      journalNodesHeld: roomsBackbone.nodesHeld(),
      roomsHealed: roomsBackbone.healed(),
      cacheBytes,
      cacheEntries,
      nodesAlive: backbone.nodesAlive(),
      nodesHeld: backbone.nodesHeld(),
      revocations: revocations.size,
    }
  }

  function lookAtDue() {
    if (workTurn(now, lookAtNext)) looks.start()
  }

  function sweep() {
    lookAtDue()
    slowClients.sweep(sessions.end)
    credentials.sweep()
    gate.sweep()
    ownValueTokens.sweep()
    rooms.sweep()
    if (now() - sweptSeldomAtMs < SWEEP_SELDOM_MS) return
    sweptSeldomAtMs = now()
    revocations.sweep()
    accounts.sweep()
    viewers.sweep()
  }

  return {
    gate,
    ownValues,
    values,
    singleFlight,
    backbone,
    rooms,
    publishes,
    histories,
    counts,

    /** Tells an operator why a user may or may not use a key. */
    explain: createExplain({ policy, rights, tokens, revocations, problemOf, namespaces, deciding, wallNow }),

    /** The user and rights of an HTTP request. */
    authenticate: createAuthenticate({ identify, anonymous: rights.anonymous, viewers, accounts, revocations }),

    /** See end-revoked.ts. */
    revoke: endRevoked.add,

    /** Tells the other gateways, and those that start later; absent where there is no journal to keep the list. */
    shareRevocation: sharedRevocations?.publish,

    /** Makes sessions of the server's upgrades. */
    attach: (server: Server) => upgrades.attach(server),

    /** Makes a session of one connection, as an upgrade does. */
    open,

    /** Looks at everything whose time has come, as a timer does once started. */
    sweep,

    /**
     * The reason why no client should be sent here, or `undefined`. A lost fetcher is no reason: all gateways would
     * turn clients down at once, although they can serve the values in their memory and say how old these are.
     */
    notReady() {
      if (isDraining) return 'draining'
      return sessions.size() >= settings.sessionsMax
        ? 'full: all sessions of GATEWAY_SESSIONS_MAX are taken'
        : undefined
    },

    /** What is wrong though clients are served. */
    problems() {
      const { inUse, others } = roomsBackbone.logs()
      return others.map(node => `journal ${node} keeps another log than the one in use (${inUse}), and is not used`)
    },

    async start() {
      await Promise.all([backbone.start(), roomsBackbone.start()])
      // Awaited, but not for long: a user who was signed out must not get in at a gateway that starts.
      await sharedRevocations?.start()
      // Not awaited: an identity provider that is down keeps nobody else waiting.
      void tokens.start()
      heartbeat.start()
      sweeper = setInterval(sweep, SWEEP_MS)
    },

    /** Sends all clients to other gateways. The listener is closed by then: otherwise the same clients come back. */
    async drain() {
      isDraining = true
      await drain({ sessions, outbox, spreadMs: settings.drainMs })
    },

    async stop() {
      clearInterval(sweeper)
      heartbeat.stop()
      tokens.stop()
      sharedRevocations?.stop()
      await Promise.all([backbone.stop(), roomsBackbone.stop()])
    },
  }
}

function untied(): never {
  throw new Error('an event came before all parts were built')
}
