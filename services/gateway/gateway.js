// Puts a gateway together from its parts. main.js gives it the real world, tests give it theirs.
import { createAccess } from './access/access.js'
import { createOutbox } from './delivery/outbox.js'
import { createSlowClients } from './delivery/slow-clients.js'
import { chooseSubprotocol, createEncodings, valueBytes } from './encodings/index.js'
import { createHandlers } from './handlers/index.js'
import { createCache } from './keys/cache.js'
import { createCalendar, SWEEP_MS } from './keys/calendar.js'
import { createSingleFlight } from './keys/single-flight.js'
import { createStaleness } from './keys/staleness.js'
import { createSubscriptions } from './keys/subscriptions.js'
import { createTakeAnswer } from './keys/take-answer.js'
import { createValues } from './keys/values.js'
import { createCounts, createHistograms, exportCounts } from './metrics.js'
import { drain } from './sessions/drain.js'
import { createHeartbeat } from './sessions/heartbeat.js'
import { createOpen } from './sessions/open.js'
import { createRateLimit } from './sessions/rate-limit.js'
import { createReceive } from './sessions/receive.js'
import { createSessionLog } from './sessions/session-log.js'
import { createSessions } from './sessions/sessions.js'
import { createUnfinished } from './sessions/unfinished.js'
import { createUpgrades } from './sessions/upgrade.js'
import { createAccept } from './transport/accept.js'

/**
 * @typedef {import('@keycast/backbone').Backbone} Backbone
 * @typedef {import('@keycast/backbone').BackboneEvents} BackboneEvents
 * @typedef {import('./delivery/outbox.js').OutboxEvents} OutboxEvents
 * @typedef {Pick<import('./settings.js').Settings, 'sessionsMax' | 'keysPerSessionMax' | 'subscriptionsMax' | 'requestsPerSecondMax'
 *   | 'messageBytesMax' | 'getsWaitingMax' | 'unsentBytesMax' | 'unsentTotalBytesMax' | 'stallMsMax' | 'heartbeatMs' | 'cacheBytesMax'
 *   | 'drainMs' | 'origins' | 'compression'>} GatewaySettings
 */

/**
 * @param {object} deps
 * @param {GatewaySettings} deps.settings
 * @param {import('@keycast/service').Namespaces} deps.namespaces
 * @param {(events: BackboneEvents) => Backbone} deps.createBackbone
 * @param {Pick<import('@keycast/service').Metrics, 'counter' | 'gauge' | 'histogram' | 'fastHistogram'>} deps.metrics
 * @param {import('./sessions/session-log.js').Log} [deps.log]
 * @param {() => number} [deps.now] monotonic, in milliseconds
 */
export function createGateway({ settings, namespaces, createBackbone, metrics, log, now = () => performance.now() }) {
  const { keysPerSessionMax, requestsPerSecondMax, getsWaitingMax, messageBytesMax, heartbeatMs } = settings
  let isDraining = false

  // Each part is given parts that were built before it. Four events go the other way: the backbone and the outbox, which
  // most parts need, report to parts that need them. They are named here and tied at the end, before anything can happen.
  // One object in one place, so that no part closes over another that does not exist yet.
  /** @type {BackboneEvents & OutboxEvents} */
  const events = { held: untied, onAnswer: untied, onEnd: untied, onWritable: untied }

  const counts = createCounts()
  const histograms = createHistograms(metrics)

  // keys: what is known of them, and how the fetcher is asked
  const calendar = createCalendar()
  const cache = createCache({ bytesMax: settings.cacheBytesMax, valueBytes, onUnwanted: calendar.cancel })
  const access = createAccess({ namespaces, cache, now })
  const backbone = createBackbone({
    held: key => events.held(key),
    onAnswer: (answer, isForGet) => events.onAnswer(answer, isForGet),
  })
  const values = createValues({ namespaces, cache, backbone, now })
  const singleFlight = createSingleFlight({ values, cache, backbone, calendar, counts, now })
  const staleness = createStaleness({ calendar, backbone, now })

  // delivery: what sessions are written, and when
  const slowClients = createSlowClients({ ...settings, now })
  const outbox = createOutbox({ events, slowClients, unsentBytesMax: settings.unsentBytesMax, counts, now })
  const subscriptions = createSubscriptions({
    access,
    values,
    cache,
    backbone,
    outbox,
    staleness,
    onFanOut,
    keysPerSessionMax,
    subscriptionsMax: settings.subscriptionsMax,
    counts,
    now,
  })
  const takeAnswer = createTakeAnswer({ cache, backbone, values, singleFlight, subscriptions, now })
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

  // sessions: how they begin, what they ask, how they end
  const unfinished = createUnfinished({ messageBytesMax })
  const sessions = createSessions({
    outbox,
    subscriptions,
    unfinished,
    sessionLog: createSessionLog({ log, now }),
    counts,
  })
  const rateLimit = createRateLimit({ requestsPerSecondMax, keysPerSessionMax, end: sessions.end, now })
  const handlers = createHandlers({
    access,
    values,
    singleFlight,
    subscriptions,
    outbox,
    rateLimit,
    getsWaitingMax,
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
    atStart: rateLimit.atStart,
    welcome: {
      heartbeatMs,
      limits: {
        messageBytes: messageBytesMax,
        keysPerSession: keysPerSessionMax,
        requestsPerSecond: requestsPerSecondMax,
      },
    },
    now,
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
    sessionCount: sessions.size,
    isDraining: () => isDraining,
    sessionsMax: settings.sessionsMax,
    origins: settings.origins,
    counts,
  })

  events.held = values.held
  events.onAnswer = takeAnswer
  events.onEnd = sessions.end
  events.onWritable = handlers.resumeGets

  exportCounts(metrics, counts, stats, settings)

  /** @type {NodeJS.Timeout | undefined} */
  let sweeper

  /** @param {import('./keys/entry.js').Entry} entry */
  function onFanOut({ value, askedAtMs }) {
    const startMs = now()
    if (value) value.receivedAtMs = startMs
    histograms.valueAged(startMs - askedAtMs)
    outbox.fence(() => histograms.fannedOut(now() - startMs))
  }

  function stats() {
    const { bytes: cacheBytes, entries: cacheEntries } = cache.stats()
    return {
      sessions: sessions.size(),
      stalled: slowClients.size(),
      ...subscriptions.stats(),
      cacheBytes,
      cacheEntries,
      nodesAlive: backbone.nodesAlive(),
    }
  }

  function sweep() {
    calendar.sweep(now(), entry => {
      singleFlight.expire(entry)
      subscriptions.check(entry)
    })
    slowClients.sweep(sessions.end)
  }

  return {
    access,
    values,
    singleFlight,
    backbone,
    counts,

    /** Makes sessions of the server's upgrades. @param {import('node:http').Server} server */
    attach: server => upgrades.attach(server),

    /** Makes a session of one connection, as an upgrade does. */
    open,

    /** Looks at everything whose time has come, as a timer does once started. */
    sweep,

    /**
     * Why no client should be sent here, or `undefined`. A fetcher that is away is no reason: all gateways would turn
     * clients down at once, although they can serve what they have in memory and say how old it is.
     */
    notReady() {
      if (isDraining) return 'draining'
      return sessions.size() >= settings.sessionsMax
        ? 'full: all sessions of GATEWAY_SESSIONS_MAX are taken'
        : undefined
    },

    async start() {
      await backbone.start()
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
      await backbone.stop()
    },
  }
}

/** @returns {never} */
function untied() {
  throw new Error('an event came before all parts were built')
}
