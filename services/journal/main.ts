// Wires a journal to the real world: settings, log, hub, internal listener, signals.
import { resolve } from 'node:path'
import { createZeromqRoomsHub, hubCurveOf } from '@keycast/backbone'
import {
  createConfiguration,
  createContainment,
  createLiveNamespaces,
  createLog,
  Misconfigured,
  readListenProblem,
  readSettings,
  realWorld,
  runService,
  withReserved,
} from '@keycast/service'
import { createInternalServer } from '@keycast/service/internal-server'
import { createMetrics } from '@keycast/service/metrics'
import { readNamespaces } from '@keycast/service/namespaces'
import { createJournal } from './journal.ts'
import { openLmdbLog } from './log/lmdb/lmdb.ts'
import { LogInUse, LogRefused } from './log/log.ts'
import { createMemoryLog } from './log/memory/memory.ts'
import { addRoomCalls } from './room-http.ts'
import { conflictsOf, settings } from './settings.ts'

const name = 'keycast-journal'
const config = readSettings(settings, {
  name,
  about: 'Orders, keeps and hands out the messages of rooms.',
  check: conflictsOf,
})
const report = createLog({ name, level: config.logLevel, format: config.logFormat })

const containment = createContainment({ ...realWorld, ends: ['link', 'request'], log: report })

let parts: Awaited<ReturnType<typeof start>>

async function openLog() {
  const { logKind, bytesMax, shortenMs } = config
  if (logKind === 'memory') return createMemoryLog({ ...realWorld, bytesMax })
  try {
    if (logKind === 'lmdb')
      return await openLmdbLog({ ...realWorld, folder: config.folder, bytesMax, shortenMs, report })
    // Its client package takes a second and 30 MB to load.
    const { openValkeyLog } = await import('./log/valkey/valkey.ts')
    return await openValkeyLog({
      ...realWorld,
      url: config.valkeyUrl as string,
      bytesMax,
      replicasMin: config.valkeyReplicasMin,
      allowsLoss: config.valkeyAllowsLoss,
      report,
    })
  } catch (error) {
    // Another start would find the same, unless another process had the log: a person must look.
    if (error instanceof LogRefused && !(error instanceof LogInUse)) throw new Misconfigured(error.message)
    throw error
  }
}

/** At once, and with nothing sent before: a supervisor starts another journal. */
function end(error: Error) {
  report.fatal({ err: error }, error.message)
  process.exit(1)
}

async function start() {
  const metrics = createMetrics({ service: 'journal' })
  const path = config.configPath
  const read = (text: string | undefined) => readNamespaces({ path, text, headers: false, authorize: false })
  const configuration = createConfiguration({
    ...realWorld,
    path,
    takeOver(text) {
      all.take(read(text))
      journal.reconfigure()
    },
    metrics,
    log: report,
  })
  const all = createLiveNamespaces(read(configuration.text))
  const { journal: namespaces, pushed } = all
  const hub = createZeromqRoomsHub({
    host: config.host,
    requestsPort: config.publicationsPort,
    answersPort: config.deliveriesPort,
    curve: hubCurveOf(config),
    containment,
    log: report,
  })
  containment.export(metrics)
  const log = await openLog()
  const { shortenMs, outboxBytesMax } = config
  const journal = createJournal({
    ...realWorld,
    namespaces: withReserved(namespaces),
    pushed,
    hub,
    log,
    metrics,
    report,
    end,
    shortenMs,
    outboxBytesMax,
  })
  const internal = createInternalServer({
    host: config.metricsHost,
    port: config.metricsPort,
    metrics,
    ready: journal.notReady,
    problems: journal.problems,
    containment,
  })
  addRoomCalls(internal.app, journal)
  const metricsPort = await internal.listen()
  await journal.start()
  configuration.start()
  const { requestsPort: publicationsPort, answersPort: deliveriesPort } = hub.ports()
  report.info(
    {
      publicationsPort,
      deliveriesPort,
      metricsPort,
      log: config.logKind,
      logId: log.id(),
      folder: config.logKind === 'lmdb' ? resolve(config.folder) : undefined,
      namespaces: [...namespaces.names, ...pushed.names],
      config: configuration.hash(),
      ...log.stats(),
      disk: log.disk?.(),
    },
    'listening',
  )
  return { journal, internal, log, configuration }
}

await runService({
  name,
  log: report,
  graceMs: config.shutdownGraceMs,
  containment,
  // A write after an unforeseen error could be wrong for good. Gateways say again what was not acknowledged.
  drains: false,
  whyNot: readListenProblem(settings, config, [
    ['host', 'publicationsPort'],
    ['host', 'deliveriesPort'],
    ['metricsHost', 'metricsPort'],
  ]),
  async start() {
    parts = await start()
  },
  stop: [
    ['configuration', () => parts.configuration.stop()],
    ['gateways', () => parts.journal.stop()],
    ['log', () => parts.log.close()],
    ['internal listener', () => parts.internal.close()],
  ],
})
