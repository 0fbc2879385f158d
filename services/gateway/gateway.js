// Puts a gateway together from its parts. main.js gives it the real world, tests give it theirs.

import { createFlusher } from './delivery/flusher.js'
import { createOutbox } from './delivery/outbox.js'
import { createStalls } from './delivery/slow-clients.js'
import { createCompression } from './encodings/compression.js'
import { createHandlers } from './handlers/index.js'
import { createCache } from './keys/cache.js'
import { createDeadlines, SWEEP_MS } from './keys/calendar.js'
import { createStaleness } from './keys/staleness.js'
import { createSubscriptions } from './keys/subscriptions.js'
import { createValues } from './keys/values.js'
import { createCounts, exportMetrics } from './metrics.js'
import { drain } from './sessions/drain.js'
import { createHeartbeat } from './sessions/heartbeat.js'
import { createLimits } from './sessions/rate-limit.js'
import { createReceive } from './sessions/receive.js'
import { createSessions } from './sessions/sessions.js'
import { createUpgrades } from './sessions/upgrade.js'

/**
 * @typedef {import('@keycast/backbone').Backbone} Backbone
 * @typedef {import('@keycast/backbone').BackboneEvents} BackboneEvents
 * @typedef {import('./sessions/session.js').Session} Session
 * @typedef {Pick<import('./settings.js').Settings, 'sessionsMax' | 'keysPerSessionMax' | 'requestsPerSecondMax'
 *   | 'messageBytesMax' | 'getsWaitingMax' | 'unsentBytesMax' | 'unsentTotalBytesMax' | 'stallMsMax' | 'heartbeatMs' | 'cacheBytesMax'
 *   | 'drainMs' | 'origins' | 'compression'>} GatewaySettings
 */

/**
 * @param {object} deps
 * @param {GatewaySettings} deps.settings
 * @param {import('@keycast/service').Namespaces} deps.namespaces
 * @param {(events: BackboneEvents) => Backbone} deps.createBackbone
 * @param {Pick<import('@keycast/service').Metrics, 'counter' | 'gauge' | 'histogram' | 'tally'>} deps.metrics
 * @param {() => number} [deps.now] monotonic, in milliseconds
 */
export function createGateway({ settings, namespaces, createBackbone, metrics, now = () => performance.now() }) {
  const counts = createCounts()
  const limits = createLimits(settings)
  const deadlines = createDeadlines()
  const cache = createCache({ bytesMax: settings.cacheBytesMax, onUnwanted: deadlines.cancel })

  // The parts refer to each other in circles, from events on: none calls another before all are there.
  const backbone = createBackbone({
    held: key => values.held(key),
    onAnswer: (answer, isFetched) => values.onAnswer(answer, isFetched),
  })
  const values = createValues({
    namespaces,
    backbone,
    cache,
    deadlines,
    onChange: (entry, change) => subscriptions.changed(entry, change),
    onCoalesced: () => counts.coalesced++,
    now,
  })
  const staleness = createStaleness({ values, deadlines, backbone, now })
  const flusher = createFlusher({ flush: session => outbox.flush(session), now })
  const compression = createCompression({
    latest: key => cache.peek(key)?.value,
    kept(key) {
      const entry = cache.peek(key)
      if (entry) cache.settle(entry)
    },
    resume: waiting => outbox.resume(waiting),
    counts,
    observe: ms => observed.compressed(ms),
    now,
  })
  const stalls = createStalls({
    end: (session, code, isUrgent) => sessions.end(session, code, isUrgent),
    limits: settings,
    now,
  })
  const outbox = createOutbox({
    flusher,
    end: (session, code) => sessions.end(session, code),
    stalls,
    answer: (session, get, asOfMs) => handlers.get(session, get, asOfMs),
    compression,
    limits: settings,
    counts,
    now,
  })
  const subscriptions = createSubscriptions({
    values,
    cache,
    backbone,
    outbox,
    staleness,
    onFanOut,
    keysPerSessionMax: settings.keysPerSessionMax,
    counts,
    now,
  })
  const handlers = createHandlers({
    values,
    subscriptions,
    outbox,
    charge: (session, tokens) => receive.charge(session, tokens),
    limits,
    counts,
    now,
  })
  const receive = createReceive({
    handle: handlers.handle,
    outbox,
    end: (session, code) => sessions.end(session, code),
    limits,
    now,
  })
  const sessions = createSessions({
    outbox,
    subscriptions,
    receive,
    atStart: limits.atStart,
    welcome: {
      heartbeatMs: settings.heartbeatMs,
      limits: {
        messageBytes: settings.messageBytesMax,
        keysPerSession: settings.keysPerSessionMax,
        requestsPerSecond: settings.requestsPerSecondMax,
      },
    },
    counts,
    now,
  })
  const heartbeat = createHeartbeat({
    slices: sessions.slices,
    periodMs: settings.heartbeatMs,
    outbox,
    terminate: session => sessions.terminate(session, 'silent'),
    now,
  })
  const upgrades = createUpgrades({
    open: sessions.open,
    sessionCount: sessions.size,
    isDraining: () => draining,
    settings,
    counts,
  })
  const observed = exportMetrics(metrics, counts, stats, settings)

  let draining = false
  /** @type {NodeJS.Timeout | undefined} */
  let sweeper

  /** @param {import('./keys/entry.js').Entry} entry */
  function onFanOut({ value, askedAtMs }) {
    const startMs = now()
    if (value) value.cameAtMs = startMs
    observed.valueAged(startMs - askedAtMs)
    flusher.fence(() => observed.fannedOut(now() - startMs))
  }

  function stats() {
    const { bytes: cacheBytes, entries: cacheEntries } = cache.stats()
    const nodesAlive = backbone.nodesAlive()
    return {
      sessions: sessions.size(),
      stalled: stalls.size(),
      ...subscriptions.stats(),
      cacheBytes,
      cacheEntries,
      nodesAlive,
    }
  }

  function sweep() {
    deadlines.sweep(now(), entry => {
      values.expire(entry)
      subscriptions.judge(entry)
    })
    stalls.sweep()
  }

  return {
    values,
    backbone,
    counts,

    /** Makes sessions of the server's upgrades. @param {import('node:http').Server} server */
    attach: server => upgrades.attach(server),

    /** Makes a session of one connection, as an upgrade does. */
    open: sessions.open,

    /** Looks at what is overdue, as a timer does once started. */
    sweep,

    /**
     * Why no client should be sent here, or `undefined`. Not that the fetcher is away: all gateways would turn clients
     * down at once, who can be served from memory and told.
     */
    notReady() {
      if (draining) return 'draining'
      return sessions.size() >= settings.sessionsMax ? 'all the sessions there may be are taken' : undefined
    },

    async start() {
      await backbone.start()
      heartbeat.start()
      sweeper = setInterval(sweep, SWEEP_MS)
    },

    /** Sends all clients elsewhere. The listener is closed by then, or the same come back. */
    async drain() {
      draining = true
      await drain({ sessions, outbox, spreadMs: settings.drainMs })
    },

    async stop() {
      clearInterval(sweeper)
      heartbeat.stop()
      await backbone.stop()
    },
  }
}
