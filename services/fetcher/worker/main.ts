// A worker process of the fetcher: forked, ended and replaced by the primary, which is its only peer.
import cluster from 'node:cluster'
import { BEAT_MS, common, createLog, readSettings, realWorld, setting } from '@keycast/service'
import { settings as declared } from '../settings.ts'
import { WORK_CREDIT_VARIABLE, WORK_ENDPOINT_VARIABLE } from '../worker-messages.ts'
import { createAsker } from './ask.ts'
import { createDeltas } from './deltas.ts'
import { createConnections } from './http/connections.ts'
import { createLookups } from './http/lookups.ts'
import { createPuller } from './pull.ts'
import { warmUp } from './warm-up.ts'
import { openWorkSocket } from './work-socket.ts'
import { startWorker } from './worker.ts'

const settings = {
  logLevel: common.logLevel,
  logFormat: common.logFormat,
  deltaBytesMax: declared.deltaBytesMax,
  warmUpPulls: declared.warmUpPulls,
  // Not an operator's setting: the environment is the only thing that a primary can give a process before it runs.
  workCredit: setting.integer({ env: WORK_CREDIT_VARIABLE, default: 0, unit: 'leases', doc: 'Set by the primary.' }),
  workEndpoint: setting.text({
    env: WORK_ENDPOINT_VARIABLE,
    default: '',
    expects: 'an endpoint',
    doc: 'Set by the primary for its workers.',
  }),
}

/** Runs this process as a worker, until the primary ends it with `worker.disconnect()` or is gone itself. */
export async function runWorker() {
  const { logLevel, logFormat, deltaBytesMax, warmUpPulls, workCredit, workEndpoint } = readSettings(settings, {
    name: 'keycast-fetcher-worker',
    about: 'pulls values over HTTP for the fetcher that started it.',
  })
  const log = createLog({ name: 'keycast-fetcher-worker', level: logLevel, format: logFormat })
  const self = cluster.worker
  if (!self || !workEndpoint || !workCredit)
    throw new Error('a worker is started by the primary of a fetcher, never alone')

  /** @param error a programmer's: the primary starts another worker */
  const die = (error: unknown) => {
    log.fatal({ err: error }, 'worker failed')
    process.exit(1)
  }
  process.on('uncaughtException', die)
  process.on('unhandledRejection', die)

  // A terminal or a supervisor may signal the whole group, but only the primary ends workers.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => {})
  process.on('SIGHUP', () => {})

  const lookup = createLookups()
  // Separate connections: bytes that a misbehaving server sends late after a value must never be read as a verdict.
  const pullConnections = createConnections({ ...realWorld, lookup })
  const askConnections = createConnections({ ...realWorld, lookup })
  const puller = createPuller({ ...realWorld, connections: pullConnections })
  const asker = createAsker({ ...realWorld, connections: askConnections })
  const deltas = createDeltas({ ...realWorld, bytesMax: deltaBytesMax })
  let worker: ReturnType<typeof startWorker> | undefined
  // The primary asked for it, or died: either way no result is wanted any more.
  self.once('disconnect', () => {
    worker?.stop()
    pullConnections.close()
    askConnections.close()
    process.exit(0)
  })
  await warmUp({ ...realWorld, puller, deltas, pullsMax: warmUpPulls })
  worker = startWorker({
    ...realWorld,
    openWorkSocket: onLease => openWorkSocket({ ...realWorld, endpoint: workEndpoint, onLease, onBroken: die }),
    puller,
    asker,
    deltas,
    id: self.id,
    credit: workCredit,
    beatMs: BEAT_MS,
    usage() {
      const { user, system } = process.cpuUsage()
      return { cpuMs: (user + system) / 1_000, residentBytes: process.memoryUsage.rss() }
    },
    log,
  })
}
