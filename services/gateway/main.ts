// Wires a gateway to the real world: settings, backbone, listeners, signals.
import type { AddressInfo } from 'node:net'
import { createZeromqBackbone, createZeromqRooms } from '@keycast/backbone'
import {
  createConfiguration,
  createContainment,
  createLiveNamespaces,
  createLog,
  needsJournal,
  readListenProblem,
  readSettings,
  realWorld,
  runService,
} from '@keycast/service'
import { createInternalServer } from '@keycast/service/internal-server'
import { createMetrics } from '@keycast/service/metrics'
import { BODY_BYTES_MAX, readNamespaces } from '@keycast/service/namespaces'
import { readAccess } from './access/policy-file.ts'
import { readApiTokens } from './doors/http/api-tokens.ts'
import { createAuditLog } from './doors/http/audit-log.ts'
import { addInternal } from './doors/http/internal.ts'
import { createPublicApp } from './doors/http/public.ts'
import { createGateway } from './gateway.ts'
import { httpConnectionsWithin, openFilesMax, sessionsWithin } from './sessions/open-files.ts'
import { conflictsOf, curveOf, settings } from './settings.ts'

const name = 'keycast-gateway'
const config = readSettings(settings, {
  name,
  about: 'Keeps clients connected over WebSocket and sends them the values of the keys they watch.',
  check: conflictsOf,
})
const log = createLog({ name, level: config.logLevel, format: config.logFormat })

/** Room in a message of the backbone for everything but the largest body. */
const BACKBONE_OVERHEAD_BYTES = 1024 ** 2

const containment = createContainment({ ...realWorld, ends: ['session', 'upgrade', 'request', 'link'], log })

let parts: ReturnType<typeof assemble>

/** @param text of keycast.yaml */
function readConfiguration(text: string | undefined) {
  const { configPath: path, origins, profile } = config
  const namespaces = readNamespaces({ path, text, headers: false })
  return { namespaces, policy: readAccess({ path, text, origins, namespaces: namespaces.all.names, profile }) }
}

function assemble() {
  const metrics = createMetrics({ service: 'gateway' })
  const configuration = createConfiguration({
    ...realWorld,
    path: config.configPath,
    takeOver(text) {
      const read = readConfiguration(text)
      gateway.takeOver(read.namespaces, read.policy)
    },
    metrics,
    log,
  })
  const { namespaces: first, policy } = readConfiguration(configuration.text)
  const namespaces = createLiveNamespaces(first)
  for (const note of policy.notes) log.warn(note)
  containment.export(metrics)
  const filesMax = openFilesMax()
  const sessionsMax = sessionsWithin(config.sessionsMax, filesMax)
  if (sessionsMax < config.sessionsMax) {
    log.warn(
      { filesMax, sessionsMax, set: config.sessionsMax },
      'fewer sessions than set: raise the limit of open files',
    )
  }
  const gateway = createGateway({
    ...realWorld,
    settings: { ...config, sessionsMax },
    namespaces,
    policy,
    createBackbone: events =>
      createZeromqBackbone({
        nodes: config.fetcherNodes,
        messageBytesMax: BODY_BYTES_MAX + BACKBONE_OVERHEAD_BYTES,
        events,
        containment,
        log,
        curve: curveOf(config),
      }),
    createRoomsBackbone: !needsJournal(first)
      ? undefined
      : events => createZeromqRooms({ nodes: config.journalNodes, events, containment, log, curve: curveOf(config) }),
    metrics,
    containment,
    log,
  })
  const publicApp = createPublicApp({
    ...realWorld,
    ...gateway,
    containment,
    log,
    origins: config.origins,
    connectionsMax: httpConnectionsWithin(sessionsMax, filesMax),
    unreadBytesMax: config.unsentTotalBytesMax,
    chat: config.profile === 'try',
  })
  gateway.attach(publicApp.server)
  const internal = createInternalServer({
    host: config.internalHost,
    port: config.internalPort,
    metrics,
    ready: () => gateway.notReady() ?? (publicApp.server.listening ? undefined : 'not listening'),
    problems: gateway.problems,
    containment,
  })
  addInternal(internal.app, {
    ...realWorld,
    ...gateway,
    apiTokens: readApiTokens(config.apiTokens ?? ''),
    audit: createAuditLog({ path: config.auditLog, log }),
  })
  return { gateway, publicApp, internal, configuration }
}

await runService({
  name,
  log,
  graceMs: config.shutdownGraceMs,
  containment,
  whyNot: readListenProblem(settings, config, [
    ['host', 'port'],
    ['internalHost', 'internalPort'],
  ]),
  async start() {
    parts = assemble()
    await parts.gateway.start()
    // Before the door for clients: where this port is taken the process ends, and would cut those that had come.
    const internalPort = await parts.internal.listen()
    await parts.publicApp.listen({ host: config.host, port: config.port })
    const { port } = parts.publicApp.server.address() as AddressInfo
    parts.configuration.start()
    log.info({ port, internalPort, config: parts.configuration.hash() }, 'listening')
  },
  stop: [
    ['configuration', () => parts.configuration.stop()],
    ['listener', () => void parts.publicApp.server.close()],
    ['clients', () => Promise.all([parts.gateway.drain(), parts.publicApp.answered()])],
    ['http', () => parts.publicApp.close()],
    ['backbone', () => parts.gateway.stop()],
    ['internal listener', () => parts.internal.close()],
  ],
})
