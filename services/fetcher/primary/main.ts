// Wires a primary to the real world: settings, hub, workers, internal listener, signals.
import { availableParallelism } from 'node:os'
import { createZeromqHub, hubCurveOf } from '@keycast/backbone'
import {
  createConfiguration,
  createContainment,
  createLiveNamespaces,
  createLog,
  readListenProblem,
  readSettings,
  realWorld,
  runService,
} from '@keycast/service'
import { createInternalServer } from '@keycast/service/internal-server'
import { createMetrics } from '@keycast/service/metrics'
import { readNamespaces } from '@keycast/service/namespaces'
import { conflictsOf, settings } from '../settings.ts'
import { createFetcher } from './fetcher.ts'

const name = 'keycast-fetcher'
const config = readSettings(settings, {
  name,
  about: 'Pulls the values of keys over HTTP, each once for all gateways, and keeps those that are watched fresh.',
  check: conflictsOf,
})
const log = createLog({ name, level: config.logLevel, format: config.logFormat })

/** More would only wait for this one process, which every value passes. */
const WORKERS_MAX = 4

const containment = createContainment({ ...realWorld, ends: ['link', 'lease', 'worker', 'request'], log })

let parts: Awaited<ReturnType<typeof start>>

async function start() {
  const metrics = createMetrics({ service: 'fetcher' })
  const path = config.configPath
  const configuration = createConfiguration({
    ...realWorld,
    path,
    takeOver: text => fetcher.takeOver(readNamespaces({ path, text })),
    metrics,
    log,
  })
  const namespaces = createLiveNamespaces(readNamespaces({ path, text: configuration.text }))
  const hub = createZeromqHub({
    host: config.host,
    requestsPort: config.requestsPort,
    answersPort: config.answersPort,
    curve: hubCurveOf(config),
    containment,
    log,
  })
  containment.export(metrics)
  const fetcher = createFetcher({
    ...realWorld,
    namespaces,
    hub,
    metrics,
    settings: { ...config, workers: config.workers || Math.min(availableParallelism(), WORKERS_MAX) },
    containment,
    log,
  })
  const internal = createInternalServer({
    host: config.metricsHost,
    port: config.metricsPort,
    metrics,
    ready: fetcher.notReady,
    problems: fetcher.problems,
    containment,
  })
  const metricsPort = await internal.listen()
  await fetcher.start()
  configuration.start()
  log.info({ ...hub.ports(), metricsPort, workers: fetcher.workerPids(), config: configuration.hash() }, 'listening')
  return { fetcher, internal, configuration }
}

await runService({
  name,
  log,
  graceMs: config.shutdownGraceMs,
  containment,
  whyNot: readListenProblem(settings, config, [
    ['host', 'requestsPort'],
    ['host', 'answersPort'],
    ['metricsHost', 'metricsPort'],
  ]),
  async start() {
    parts = await start()
  },
  stop: [
    ['configuration', () => parts.configuration.stop()],
    ['gateways', () => parts.fetcher.stopServing()],
    ['workers', () => parts.fetcher.stopFetching()],
    ['internal listener', () => parts.internal.close()],
  ],
})
