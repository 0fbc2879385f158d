// The metrics of a fetcher node. No label has more values than keycast.yaml names backends, or there are error codes.
import type { Answer, ValuesHub } from '@keycast/backbone'
import { createFastHistogram, type FastHistogram, type FastHistogramSeries, type Metrics } from '@keycast/service'
import type { Result } from '../work/messages.ts'
import { type Lane, lanes } from './fetching/fetch-queue.ts'
import type { RefusalCode } from './gateways/refusals.ts'
import type { KeySource } from './origins/origins.ts'
import type { Primary } from './primary.ts'
import type { WorkerMetrics, Workers } from './workers/workers.ts'

export interface FetchMetrics {
  /** How a gateway's want of a key was met. */
  wanted: (how: (typeof ways)[number]) => void
  /** A want of a key was not met, or was met and has ended. */
  refused: (code: RefusalCode) => void
  started: (lane: Lane, waitedMs: number) => void
  ended: (origin: string, result: Result, bytes: number, tookMs: number) => void
  reissued: () => void
  answered: (type: Answer['type']) => void
  /** A change went out to a gateway. */
  relayed: (tookMs: number) => void
  /** A user's own value was dropped. */
  ownEnded: (why: 'forbidden' | 'expired') => void
}

const ways = ['memory', 'plan', 'coalesced', 'fetched'] as const

const refusalCodes: RefusalCode[] = ['bad_key', 'unknown_namespace', 'capacity', 'forbidden', 'token_expired']

/** How fetches end. not_modified: 304. unchanged: 200 with the bytes that are held. value: other bytes. Others are error codes. */
const outcomes = [
  'value',
  'unchanged',
  'not_modified',
  'not_found',
  'backend_error',
  'backend_refused',
  'backend_throttled',
  'backend_redirect',
  'backend_timeout',
  'backend_unreachable',
  'invalid_content',
  'too_large',
  'fetcher_timeout',
] as const

/** From a backend that is near up to the longest timeout. */
const FETCH_BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** @param origins the backends of keycast.yaml */
export function createFetcherMetrics(
  { counter, histogram, fastHistogram }: Pick<Metrics, 'counter' | 'gauge' | 'histogram' | 'fastHistogram'>,
  origins: Iterable<string>,
): FetchMetrics & WorkerMetrics {
  const wanted = counter({
    name: 'wants_total',
    help: 'Watches and gets of gateways that were met: from memory; by the plan of another node; coalesced, with a fetch under way; fetched.',
    labelNames: ['met'],
  })
  const refused = counter({
    name: 'wants_refused_total',
    help: 'Watches and gets refused, or ended after they were met, by code. forbidden and token_expired are the end of a right (per: user).',
    labelNames: ['code'],
  })
  const waited = histogram({
    name: 'fetch_wait_seconds',
    help: 'From a fetch being queued to its lease going to a worker.',
    labelNames: ['lane'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  })
  const took = createFetchTimes(origins)
  fastHistogram({
    name: 'fetch_seconds',
    help: 'From a lease going to a worker to its result, by backend (origin) and outcome.',
    series: took.series,
  })
  const bytes = counter({ name: 'fetched_bytes_total', help: 'Bytes of the bodies of new versions.' })
  // Of new versions of watched keys whose last version was held. no_base: the worker does not have that version; size:
  // the body is too small or too large; time: deltas had used up their share of it; gain: over half of the body.
  const deltas = counter({ name: 'deltas_total', help: 'Deltas to new versions, by result.', labelNames: ['result'] })
  const answers = counter({
    name: 'answers_total',
    help: 'Values, confirmations and failures sent to gateways.',
    labelNames: ['type'],
  })
  const relay = histogram({
    name: 'relay_seconds',
    help: 'From a worker bringing a changed value to its being sent to a gateway, for each gateway.',
    buckets: [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  })
  const reissues = counter({
    name: 'leases_reissued_total',
    help: 'Fetches leased to a second worker, because the first was lost.',
  })
  const ownEnded = counter({
    name: 'user_values_ended_total',
    help: "Users' own values let go of while wanted: forbidden, the backend refused the user; expired, no token was valid.",
    labelNames: ['reason'],
  })
  const restarts = counter({
    name: 'worker_restarts_total',
    help: 'Workers lost: exit, they ended by themselves; silent, they hung and were killed.',
    labelNames: ['reason'],
  })
  const late = counter({
    name: 'late_results_total',
    help: 'Results dropped because their lease had gone to another worker or failed.',
  })
  for (const result of ['made', 'no_base', 'size', 'time', 'gain']) deltas.inc({ result }, 0)
  for (const reason of ['exit', 'silent']) restarts.inc({ reason }, 0)
  for (const reason of ['forbidden', 'expired']) ownEnded.inc({ reason }, 0)
  for (const met of ways) wanted.inc({ met }, 0)
  for (const code of refusalCodes) refused.inc({ code }, 0)

  return {
    wanted: met => wanted.inc({ met }),
    refused: code => refused.inc({ code }),
    started: (lane, waitedMs) => waited.observe({ lane }, waitedMs / 1_000),
    ended: (origin, result, bodyBytes, tookMs) => {
      took.of(origin, outcomeOf(result)).observe(tookMs)
      bytes.inc(bodyBytes)
      if (result.kind !== 'value') return
      const made = result.deltaFrom ? 'made' : result.deltaSkipped
      if (made) deltas.inc({ result: made })
    },
    reissued: () => reissues.inc(),
    answered: type => answers.inc({ type }),
    relayed: tookMs => relay.observe(tookMs / 1_000),
    ownEnded: reason => ownEnded.inc({ reason }),
    workerLost: reason => restarts.inc({ reason }),
    lateResult: () => late.inc(),
  }
}

/**
 * How long fetches take, a histogram for each backend and outcome. All are there from the start: rate() takes what
 * Prometheus sees first for what was there before.
 */
function createFetchTimes(origins: Iterable<string>) {
  const byOrigin = new Map<string, Map<string, FastHistogram>>()
  const series: FastHistogramSeries[] = []

  /** @param origin one of keycast.yaml @param outcome one of few */
  function of(origin: string, outcome: string) {
    return byOrigin.get(origin)?.get(outcome) ?? add(origin, outcome)
  }

  function add(origin: string, outcome: string) {
    const histogram = createFastHistogram(FETCH_BUCKETS)
    const ofOrigin = byOrigin.get(origin) ?? new Map()
    byOrigin.set(origin, ofOrigin.set(outcome, histogram))
    series.push({ labels: { origin, outcome }, histogram })
    return histogram
  }

  for (const origin of origins) for (const outcome of outcomes) add(origin, outcome)
  return { of, series }
}

function outcomeOf(result: Result) {
  if (result.kind === 'failed') return result.code
  if (result.kind === 'value') return 'value'
  return result.status === 304 ? 'not_modified' : 'unchanged'
}

interface Parts {
  primary: Pick<Primary, 'sources' | 'table'>
  workers: Pick<Workers, 'stats'>
  hub: Pick<ValuesHub, 'stats'>
  settings: { inFlightMax: number; cacheBytesMax: number }
}

/** Exports levels, read from the parts at each scrape. */
export function exportLevels(
  { counter, gauge }: Pick<Metrics, 'counter' | 'gauge'>,
  { primary, workers, hub, settings }: Parts,
) {
  const level = (name: string, help: string, read: () => number) =>
    gauge({
      name,
      help,
      collect() {
        this.set(read())
      },
    })
  const { sources, table } = primary

  level('cache_entries', 'Keys held: values, failures, and keys being fetched.', () => table.stats().keys)
  level('missing_keys', 'Keys held that the backend never had: an eighth of the memory is theirs at most.', () =>
    table.missing(),
  )
  level('user_values', "Users' own values held (per: user).", () => table.own())
  level('cache_bytes', 'Memory that the keys held are counted as.', () => table.stats().bytes)
  level('cache_max_bytes', 'Limit of cache_bytes: FETCHER_CACHE_BYTES_MAX.', () => settings.cacheBytesMax)
  level('fetches_in_flight_max', 'Ceiling of fetch_limit: FETCHER_IN_FLIGHT_MAX.', () => settings.inFlightMax)
  level('workers', 'Workers that take leases.', () => workers.stats().ready)
  level('worker_credit', 'Leases that workers would take on top of those they have.', () => workers.stats().credit)
  counter({
    name: 'workers_cpu_seconds_total',
    help: 'CPU time of all workers, ended ones included.',
    collect() {
      this.reset()
      this.inc(workers.stats().cpuMs / 1_000)
    },
  })
  level('workers_resident_memory_bytes', 'Resident memory of all workers.', () => workers.stats().residentBytes)
  level('links', 'Gateways linked to this node.', () => hub.stats().links)
  level(
    'link_due_keys',
    'Keys that gateways are due: their latest state is still to be sent, summed over gateways.',
    () => hub.stats().dueKeys,
  )
  level('link_unconfirmed_bytes', 'Bytes sent to gateways and not yet confirmed by them.', () => hub.stats().bytesOut)

  const laneLevel = (name: string, help: string, read: (lane: Lane, source: KeySource) => number) =>
    gauge({
      name,
      help,
      labelNames: ['lane'],
      collect() {
        for (const lane of lanes) {
          let sum = 0
          for (const source of sources.values()) sum += read(lane, source)
          this.set({ lane }, sum)
        }
      },
    })
  laneLevel('fetches_waiting', 'Fetches queued for a place in flight or for credit of a worker.', (lane, { queue }) =>
    queue.queuedIn(lane),
  )
  laneLevel('fetches_in_flight', 'Fetches leased to a worker.', (lane, { queue }) => queue.inFlightOf(lane))

  const sourceLevel = (name: string, help: string, read: (source: KeySource) => number) =>
    gauge({
      name,
      help,
      labelNames: ['origin', 'namespace'],
      collect() {
        for (const source of sources.values()) {
          this.set({ origin: source.origin.name, namespace: source.namespace }, read(source))
        }
      },
    })
  sourceLevel('breaker_open', '1 while the circuit breaker of a namespace is open.', ({ breaker }) =>
    Number(breaker.isOpen()),
  )
  sourceLevel(
    'fetch_limit',
    'Fetches that a namespace may have in flight: as many as do not make its backend slower.',
    ({ limit }) => limit.inForce(),
  )
  sourceLevel(
    'watched_keys',
    'Keys kept fresh: some gateway watches them, or did a second ago.',
    ({ keptKeys }) => keptKeys,
  )
  sourceLevel('failing_keys', 'Keys kept fresh whose last fetch failed.', ({ failing }) => failing.size)
}
