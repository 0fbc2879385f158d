// Puts a fetcher node together: the hub towards gateways, the primary's state, the workers.
import type { ValuesHub } from '@keycast/backbone'
import {
  type Containment,
  type JournalNamespaces,
  type Log,
  type Metrics,
  type Namespaces,
  realWorld,
  valuesAndRooms,
} from '@keycast/service'
import { createAsks, isAsk } from './authorize/asks.ts'
import { createAuthorize } from './authorize/authorize.ts'
import { createAuthorizeMetrics } from './authorize/metrics.ts'
import { createFetcherMetrics, exportLevels } from './metrics.ts'
import { originNames } from './origins/origins.ts'
import { createPrimary } from './primary.ts'
import { createBackoff } from './timing/backoff.ts'
import { createInTurns } from './timing/in-turns.ts'
import { createTimerWheel } from './timing/timer-wheel.ts'
import { creditFor } from './workers/credit.ts'
import { createForks } from './workers/processes.ts'
import { bindWork, type WorkSocket } from './workers/work-socket.ts'
import { createWorkers } from './workers/workers.ts'

/** Upper end of the first wait before a worker that did not live long is replaced. */
const RESTART_MS_INITIAL = 250

/** Upper end of the first wait before an `authorize` question is asked again. */
const QUESTION_MS_INITIAL = 1_000

const now = () => performance.now()

interface Deps {
  namespaces: Namespaces & { journal: JournalNamespaces }
  hub: ValuesHub
  metrics: Metrics
  settings: { workers: number; inFlightMax: number; authorizeInFlightMax: number; cacheBytesMax: number }
  containment: Containment
  log: Log
}

export function createFetcher({ namespaces, hub, metrics, settings, containment, log }: Deps) {
  const wheel = createTimerWheel({ now })
  const counts = createFetcherMetrics(metrics, originNames(namespaces))
  const firstBackoff = createBackoff({ initialMs: RESTART_MS_INITIAL, random: Math.random })
  const every = realWorld.every
  const workers = createWorkers({ count: settings.workers, firstBackoff, wheel, every, metrics: counts, log, now })
  const primary = createPrimary({
    namespaces,
    pool: workers,
    markDue: hub.tell,
    wheel,
    metrics: counts,
    settings,
    containment,
    now,
  })
  const { inFlightMax, authorizeInFlightMax } = settings
  const authorizeMetrics = createAuthorizeMetrics(metrics)
  const deciding = valuesAndRooms(namespaces)
  const asks = createAsks({
    namespaces: deciding,
    pool: workers,
    cap: authorizeInFlightMax,
    inTurns: createInTurns({ wheel, now }),
    metrics: authorizeMetrics,
    now,
  })
  const { onCommand } = createAuthorize({
    namespaces: deciding,
    asks,
    tellDecision: hub.tellResult,
    firstBackoff: createBackoff({ initialMs: QUESTION_MS_INITIAL, random: Math.random }),
    metrics: authorizeMetrics,
    now,
  })
  authorizeMetrics.exportLevels(asks)
  const credit = creditFor({
    origins: originNames(namespaces).size,
    inFlightMax,
    authorizeOrigins: asks.origins,
    authorizeInFlightMax,
  })
  exportLevels(metrics, { primary, workers, hub, settings })
  let socket: WorkSocket
  let serving = false

  /** Resolves once gateways can connect and every worker takes leases. */
  async function start() {
    socket = await bindWork({
      onMessage: workers.onMessage,
      onFailed: workers.end,
      // Without its workers this process is of no use: it is started anew.
      onBroken: containment.fail,
      containment,
    })
    await workers.start(
      { fork: createForks({ endpoint: socket.endpoint, credit }), send: socket.send },
      {
        onResult(leased, result, body, delta) {
          if (isAsk(leased)) asks.ended(leased, result)
          else primary.fetches.ended(leased, result, body, delta)
        },
        onLost: leased => (isAsk(leased) ? asks.lost(leased) : primary.fetches.lost(leased)),
        onCredit() {
          primary.fetches.startAll()
          asks.startAll()
        },
      },
    )
    await hub.start({ ...primary.hubEvents, onCommand })
    serving = true
  }

  function notReady() {
    if (!serving) return 'not started'
    return workers.stats().ready === 0 ? 'no worker takes leases' : undefined
  }

  async function stopServing() {
    serving = false
    await hub.stop()
    wheel.stop()
  }

  /** Fetches under way end without a result: there is no gateway left to send it to. */
  async function stopFetching() {
    await workers.stop()
    socket.close()
  }

  return { start, notReady, workerPids: workers.pids, stopServing, stopFetching }
}
