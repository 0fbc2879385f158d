// Puts a gateway together from its parts, each of which its folder's index.ts builds. main.ts gives it the real world, tests
// give it theirs.
import type { Backbone, BackboneEvents, RoomsBackbone, RoomsEvents } from '@keycast/backbone'
import { namespaceOf } from '@keycast/protocol'
import {
  type Containment,
  fullness,
  type LiveNamespaces,
  type MetricMakers,
  Misconfigured,
  type ReadNamespaces,
  type World,
} from '@keycast/service'
import type { Change } from './access/backend/decisions.ts'
import { assembleAccess } from './access/index.ts'
import type { Policy } from './access/policy-file.ts'
import { createChanges } from './change-streams.ts'
import { createCounts } from './counts.ts'
import { assembleDelivery } from './delivery/index.ts'
import { assembleDoors } from './doors/index.ts'
import { createEncodings } from './encodings/index.ts'
import { assembleGate } from './gate/index.ts'
import { createLinks } from './links.ts'
import { exportCounts } from './metrics.ts'
import { assembleSessions } from './sessions/index.ts'
import { createRecheck } from './sessions/recheck-rights.ts'
import type { Log } from './sessions/session-log.ts'
import type { Settings } from './settings.ts'
import { createSweeps } from './sweeps.ts'
import { assembleTopics } from './topics/index.ts'
import { createNoJournal } from './topics/rooms/no-journal.ts'

interface Deps extends World {
  settings: Settings
  /** Both are changed by `takeOver`. */
  namespaces: LiveNamespaces
  /** The `access` section of keycast.yaml. */
  policy: Policy
  createBackbone: (events: BackboneEvents) => Backbone
  /** For the namespaces of rooms; absent if there are none. */
  createRoomsBackbone?: (events: RoomsEvents) => RoomsBackbone
  metrics: MetricMakers
  log?: Log
  containment: Pick<Containment, 'guard'>
}

export function createGateway({ createBackbone, createRoomsBackbone = createNoJournal, metrics, ...given }: Deps) {
  const counts = createCounts()
  const all = { ...given, counts }
  const { namespaces } = given

  const links = createLinks({ createBackbone, createRoomsBackbone, pushed: namespaces.pushed })
  const changes = createChanges({ ...all, namespaces: namespaces.fetched, backbone: links.values })
  const access = assembleAccess({ ...all, links })
  const gate = assembleGate({ ...all, namespaces: namespaces.all, backbone: links.values })
  const outbox = assembleDelivery(all)
  const topics = assembleTopics({ ...all, links, viewers: access.viewers, gate, outbox })
  const encodings = createEncodings({
    latest: topics.latest,
    grown: topics.grown,
    resume: outbox.resume,
    counts,
    now: given.now,
  })
  const sessions = assembleSessions({ ...all, access, gate, topics, encodings, outbox })
  const doors = assembleDoors({ ...all, links, access, gate, topics, sessions, outbox })

  // From here on parts call those that were built after them.
  links.start({ ...topics.events, values: changes.beside(topics.events.values), reserved: access.reservedEvents })
  const askAgain = (change: Change) => gate.changed(change, access.viewers.of(change.user))
  access.start({
    askAgain,
    forgotten(viewer) {
      gate.forget(viewer)
      topics.tokens.ended(viewer)
    },
    renewed: topics.tokens.renewed,
    expired: topics.tokens.expired,
    endSessions: sessions.endRevoked,
    endAddress: sessions.endAddress,
  })
  gate.start(topics.holders)
  outbox.start({ onEnd: sessions.end, onWritable: doors.resumeGets })
  sessions.start(doors.handle)

  const recheck = createRecheck({
    ...given,
    gate,
    outbox,
    sessions: [sessions.all, doors.waits.waitedKeys.sessions],
  })
  const sweeps = createSweeps({
    often: [topics.sweep, outbox.sweep, sessions.sweep, gate.sweep],
    seldom: [access.sweep, sessions.sweepSeldom],
    ...given,
  })
  const parts = [doors, sessions, outbox, gate, topics, links, access]
  const stats = () => Object.assign({}, ...parts.map(part => part.stats()))
  exportCounts(metrics, counts, stats, access.jwksStatus, given.settings, access.missingRevocations)

  /** The problem of a key itself, be it of a value or of a room. @param key anything an operator sent */
  const problemOf = (key: string) => gate.operator(undefined, key)

  const { values, singleFlight, ownValues, rooms, histories } = topics
  const { open, attach, notReady, endAddress } = sessions
  return {
    gate,
    namespaces: namespaces.values,
    values,
    coded: encodings.coded,
    singleFlight,
    ownValues,
    rooms,
    histories,
    publishes: doors.publishes,
    backbone: links.values,
    counts,
    open,
    peerOf: access.identify.peerOf,
    attach,
    endAddress,
    revoke: access.revoke,
    shareRevocation: access.shareRevocation,
    shareClosing: access.shareClosing,
    askAgain,
    shareAsking: access.shareAsking,
    notReady,
    authenticate: doors.authenticate,
    waits: doors.waits,
    streams: doors.streams,
    explain: access.explaining(problemOf),

    /** Looks at everything whose time has come, as a timer does once started. */
    sweep: sweeps.sweep,

    /**
     * Another keycast.yaml: from now on requests are judged by it, and sessions soon lose what it does not grant.
     *
     * @throws {Misconfigured} where it holds what cannot change while a gateway runs
     */
    takeOver(next: ReadNamespaces, policy: Policy) {
      const problems = [...namespaces.problemsOf(next), ...access.problemsOf(next, policy)]
      if (problems.length > 0) throw new Misconfigured(problems.join('\n'))
      const { decided, authorize, times } = namespaces.take(next)
      topics.ease(times)
      access.takeOver(policy)
      const isOf = (names: ReadonlySet<string>) => (key: string) => names.has(namespaceOf(key)) && gate.isViewers(key)
      gate.askAgain(access.viewers.of(undefined), isOf(authorize))
      // None decided for a while: what the one before that said does not count.
      gate.askAgain(access.viewers.of(undefined), isOf(decided), false)
      recheck.start(decided)
    },

    /** What is wrong though clients are served. */
    problems() {
      const { inUse, others } = links.rooms.logs()
      const max = given.settings.cacheBytesMax
      return [
        ...fullness('watched values', topics.stats().cacheWantedBytes, { max, setting: 'GATEWAY_CACHE_BYTES_MAX' }),
        ...others.map(node => `journal ${node} keeps another log than the one in use (${inUse}), and is not used`),
      ]
    },

    /** Sends all clients to other gateways. The listener is closed by then: otherwise the same clients come back. */
    async drain() {
      await Promise.all([doors.drain(), sessions.drain()])
    },

    async start() {
      await links.open()
      changes.start()
      await access.readRevocations()
      sessions.serve()
      // Not awaited: an identity provider that is down keeps nobody else waiting.
      void access.open()
      sweeps.start()
    },

    async stop() {
      sweeps.stop()
      changes.stop()
      sessions.stop()
      access.close()
      await links.close()
    },
  }
}
