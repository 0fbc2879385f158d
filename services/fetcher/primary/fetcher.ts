// Puts a fetcher node together: the hub towards gateways, the primary's state, the workers.
import type { NodeEvents, Values, ValuesHub } from '@keycast/backbone'
import {
  type Containment,
  fullness,
  type LiveNamespaces,
  type Log,
  type MetricMakers,
  Misconfigured,
  type ReadNamespaces,
  type World,
} from '@keycast/service'
import { createPost, createSecrets } from '@keycast/service/notify'
import { authorizeQuestions, createAuthorize } from './authorize/authorize.ts'
import { createAuthorizeMetrics, exportAuthorizeLevels } from './authorize/metrics.ts'
import { createChanges } from './changes/changes.ts'
import { createChangesMetrics, exportChangesLevels } from './changes/metrics.ts'
import { createFailureLog } from './failure-log.ts'
import { WAITS_MAX } from './fetching/long-polls.ts'
import { createFetcherMetrics, exportLevels } from './metrics.ts'
import { originsOf } from './origins/origins.ts'
import { createPrimary } from './primary.ts'
import { createQuestions } from './questions/questions.ts'
import { createRulingMetrics, exportRulingLevels } from './rulings/metrics.ts'
import { createRulings, rulingQuestions } from './rulings/rulings.ts'
import { createInTurns } from './timing/in-turns.ts'
import { createTimerWheel } from './timing/timer-wheel.ts'
import { createTokens } from './tokens/tokens.ts'
import { creditFor } from './workers/credit.ts'
import { createForks } from './workers/processes.ts'
import { bindWork, type WorkSocket } from './workers/work-socket.ts'
import { createWorkers } from './workers/workers.ts'

interface Deps extends World {
  namespaces: LiveNamespaces
  hub: ValuesHub
  metrics: MetricMakers
  settings: { workers: number; inFlightMax: number; authorizeInFlightMax: number; cacheBytesMax: number }
  containment: Containment
  log: Log
}

export function createFetcher({ namespaces: live, hub, metrics, settings, containment, log, ...world }: Deps) {
  const { now, random } = world
  const { all, fetched: namespaces, journal } = live
  const wheel = createTimerWheel({ now, every: world.every })
  const origins = originsOf(namespaces, ({ origin }) => origin)
  const counts = createFetcherMetrics(metrics, origins)
  const workers = createWorkers({ count: settings.workers, wheel, metrics: counts, log, ...world })
  const tokens = createTokens({ namespaces, log, ...world })
  const changes = createChanges({
    namespaces,
    tokens,
    markDue: hub.tell,
    metrics: createChangesMetrics(
      metrics,
      originsOf(namespaces, ({ changes }) => changes?.origin),
    ),
    log,
    ...world,
  })
  exportChangesLevels(metrics, [...changes.values()])
  const waitOrigins = originsOf(namespaces, ({ waitMs, origin }) => (waitMs === undefined ? undefined : origin))
  const post = createPost({ secrets: createSecrets(world), wallNow: world.wallNow })
  const primary = createPrimary({
    changes,
    namespaces,
    pool: workers,
    markDue: hub.tell,
    wheel,
    metrics: counts,
    settings: { ...settings, waitsMax: waitOrigins.size * WAITS_MAX },
    containment,
    tokens,
    post,
    log,
    ...world,
  })
  const { inFlightMax, authorizeInFlightMax } = settings
  const askedOrigins = originsOf(all, ({ authorize }) => authorize?.origin)
  const authorizeMetrics = createAuthorizeMetrics(metrics, askedOrigins)
  const failureLog = createFailureLog({
    wheel,
    log,
    now,
    says: 'questions to a backend fail',
    saysAgain: 'questions to a backend are answered again',
  })
  const inTurns = createInTurns({ wheel, now })
  const asking = { pool: workers, cap: authorizeInFlightMax, inTurns, failureLog, ...world }
  const viewerQuestions = createQuestions({
    ...asking,
    kind: authorizeQuestions(all),
    metrics: authorizeMetrics,
  })
  const authorize = createAuthorize({
    namespaces: all,
    questions: viewerQuestions,
    tellDecision: hub.tellResult,
    logNobody: createFailureLog({
      wheel,
      log,
      now,
      says: 'authorize answers 404 and has admitted nobody since the start: check its url',
    }).failed,
    metrics: authorizeMetrics,
    now,
    random,
  })
  const ruledOrigins = originsOf(journal, ({ ask }) => ask?.origin)
  const rulingMetrics = createRulingMetrics(metrics, ruledOrigins)
  const messageQuestions = createQuestions({ ...asking, kind: rulingQuestions(journal), metrics: rulingMetrics })
  const rulings = createRulings({
    namespaces: journal,
    questions: messageQuestions,
    tellRuling: hub.tellResult,
    logNothing: createFailureLog({
      wheel,
      log,
      now,
      says: 'publish.ask answers 403 without a reason and has taken no message since the start: check its url and headers',
    }).failed,
    metrics: rulingMetrics,
    now,
  })
  const onCommand: NodeEvents<Values>['onCommand'] = (link, id, command, leftMs, payer) => {
    if (command.type === 'authorize') return authorize.onCommand(link, id, command, leftMs, payer)
    // Its gateway has given it up: nobody publishes it, or a newer value may have come by another.
    if (leftMs <= 0) return
    if (command.type === 'ask') rulings.onCommand(link, id, command, payer)
    else hub.tellResult(link, id, primary.handOver(command))
  }
  exportAuthorizeLevels(metrics, viewerQuestions.levels)
  exportRulingLevels(metrics, messageQuestions.levels)
  const credit = creditFor({
    origins: origins.size,
    inFlightMax,
    authorizeOrigins: askedOrigins.size + ruledOrigins.size,
    authorizeInFlightMax,
    waitOrigins: waitOrigins.size,
  })
  exportLevels(metrics, { primary, workers, hub, settings })
  let socket: WorkSocket
  let serving = false

  /** Resolves once gateways can connect and every worker takes leases. */
  async function start() {
    socket = await bindWork({
      ...world,
      onMessage: workers.onMessage,
      onFailed: workers.end,
      // Without its workers this process is of no use: it is started anew.
      onBroken: containment.fail,
      containment,
    })
    await workers.start({ fork: createForks({ endpoint: socket.endpoint, credit }), send: socket.send }, () => {
      for (const { startAll } of [primary.fetches, viewerQuestions, messageQuestions]) startAll()
    })
    await tokens.start()
    primary.viewers.start()
    await hub.start({ ...primary.hubEvents, onCommand })
    serving = true
  }

  function notReady() {
    if (!serving) return 'not started'
    return workers.stats().ready === 0 ? 'no worker takes leases' : undefined
  }

  /**
   * The namespaces of another keycast.yaml.
   *
   * @throws {Misconfigured} where it holds what cannot change while a node runs
   */
  async function takeOver(next: ReadNamespaces) {
    const problems = live.problemsOf(next)
    if (problems.length > 0) throw new Misconfigured(problems.join('\n'))
    await tokens.prepare(next.fetched)
    const changes = live.take(next)
    tokens.take()
    for (const { renew } of [viewerQuestions, messageQuestions]) renew()
    primary.reconfigure(changes)
  }

  async function stopServing() {
    serving = false
    primary.viewers.stop()
    post.close()
    tokens.stop()
    await hub.stop()
    for (const { close } of changes.values()) close()
    wheel.stop()
  }

  /** Fetches under way end without a result: there is no gateway left to send it to. */
  async function stopFetching() {
    await workers.stop()
    socket.close()
  }

  /** What is wrong though keys are served. */
  function problems() {
    const max = settings.cacheBytesMax
    return fullness('watched keys', primary.table.wantedBytes(), { max, setting: 'FETCHER_CACHE_BYTES_MAX' })
  }

  return { start, notReady, problems, takeOver, workerPids: workers.pids, stopServing, stopFetching }
}
