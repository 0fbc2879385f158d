// The simulated backend as a process: settings, listener, signals.
import { createContainment, createLog, readListenProblem, readSettings, realWorld, runService } from '@keycast/service'
import { createInternalServer } from '@keycast/service/internal-server'
import { createMetrics } from '@keycast/service/metrics'
import { createDocuments } from './documents.ts'
import { createFaults } from './faults.ts'
import { addRoutes } from './routes.ts'
import { conflictsOf, settings } from './settings.ts'
import { createStats } from './stats.ts'

const name = 'keycast-data-provider'
const config = readSettings(settings, {
  name,
  about: 'a simulated backend to try Keycast with: JSON, text, bytes, and faults.',
  check: conflictsOf,
})
const log = createLog({ name, level: config.logLevel, format: config.logFormat })
const metrics = createMetrics({ service: 'provider' })
const containment = createContainment({ ...realWorld, ends: ['request'], log })
containment.export(metrics)
const server = createInternalServer({
  host: config.host,
  port: config.port,
  metrics,
  ready: () => undefined,
  containment,
})
const { documentBytes, changeMs, latencyMs, jitterMs, hangRate, errorRate, garbageRate } = config
addRoutes(server.app, {
  documents: createDocuments({ changeMs }),
  faults: createFaults({ latencyMs, jitterMs, hangRate, errorRate, garbageRate }),
  stats: createStats(Date.now),
  metrics,
  documentBytes,
  now: Date.now,
  monotonicNs: process.hrtime.bigint,
})

await runService({
  name,
  log,
  graceMs: config.shutdownGraceMs,
  containment,
  whyNot: readListenProblem(settings, config, [['host', 'port']]),
  async start() {
    const port = await server.listen()
    log.info({ port, documentBytes, changeMs }, 'listening')
  },
  // Requests under way are cut, hanging ones included: Keycast must cope with a backend that does this.
  stop: [['listener', server.close]],
})
