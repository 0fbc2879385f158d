// The metrics of a fetcher node. No label has more values than keycast.yaml names backends, or there are error codes.
import type { Answer, ValuesHub } from '@keycast/backbone'
import type { MetricMakers } from '@keycast/service'
import { by } from '@keycast/service/metrics'
import type { Result } from '../worker-messages.ts'
import { type Lane, lanes } from './fetching/fetch-queue.ts'
import type { RefusalCode } from './gateways/refusals.ts'
import type { KeySource } from './origins/origins.ts'
import type { Primary } from './primary.ts'
import type { Workers } from './workers/workers.ts'

/** What each counts is said in its help. */
export type FetcherMetrics = ReturnType<typeof createFetcherMetrics>

const answerTypes: Answer['type'][] = ['value', 'current', 'kept', 'failed']

const refusalCodes: (RefusalCode | 'share')[] = [
  'bad_key',
  'unknown_namespace',
  'capacity',
  'share',
  'forbidden',
  'token_expired',
]

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
export function createFetcherMetrics({ count, sum, histogram }: MetricMakers, origins: Iterable<string>) {
  const took = histogram(
    'fetch_seconds',
    'From a lease going to a worker to its result, by backend (origin) and outcome; of a batch, for each key.',
    FETCH_BUCKETS,
    { origin: origins, outcome: outcomes },
  )
  const fetched = sum('fetched_bytes_total', 'Bytes of the bodies of new versions.')
  // Of new versions of watched keys whose last version was held. no_base: the worker does not have that version; size:
  // the body is too small or too large; time: deltas had used up their share of it; gain: over half of the body.
  const delta = count('deltas_total', 'Deltas to new versions, by result.', {
    result: ['made', 'no_base', 'size', 'time', 'gain'],
  })
  const waited = histogram(
    'fetch_wait_seconds',
    'From a fetch being queued to its lease going to a worker.',
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    { lane: lanes },
  )

  return {
    wanted: count(
      'wants_total',
      'Watches and gets of gateways that were met: from memory; by the plan of another node; coalesced, with a fetch under way; fetched.',
      { met: ['memory', 'plan', 'coalesced', 'fetched'] },
    ),
    refused: count(
      'wants_refused_total',
      'Watches and gets refused, or ended after they were met, by code. share: capacity for one user, address or network. forbidden and token_expired are the end of a right (per: user).',
      { code: refusalCodes },
    ),
    started: (lane: Lane, waitedMs: number) => waited(waitedMs, lane),
    ended(origin: string, result: Result, bodyBytes: number, tookMs: number) {
      took(tookMs, origin, outcomeOf(result))
      fetched(bodyBytes)
      if (result.kind !== 'value') return
      const made = result.deltaFrom ? 'made' : result.deltaSkipped
      if (made) delta(made)
    },
    batched: histogram('batch_keys', 'Keys in one request for many (batch).', [1, 2, 5, 10, 20, 50, 100, 200, 500]),
    waited: count(
      'waits_total',
      'Requests that a backend was to answer once the key changed (refresh: wait), by how they ended. void: the key was asked for beside it, or is watched no more.',
      { origin: origins, end: ['changed', 'unchanged', 'failed', 'void'] },
    ),
    reissued: count('leases_reissued_total', 'Fetches leased to a second worker, because the first was lost.'),
    handedOver: count(
      'handed_over_total',
      'Values and deletions that backends handed over. older: a newer one had come before.',
      { outcome: ['taken', 'older', 'refused'] },
    ),
    answered: count('answers_total', 'Values, confirmations and failures sent to gateways.', { type: answerTypes }),
    relayed: histogram(
      'relay_seconds',
      'From a worker bringing a changed value to its being sent to a gateway, for each gateway.',
      [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    ),
    ownEnded: count(
      'user_values_ended_total',
      "Users' own values let go of while wanted: forbidden, the backend refused the user; expired, no token was valid.",
      { reason: ['forbidden', 'expired'] },
    ),
    notified: count(
      'notify_calls_total',
      'Calls that tell a backend which keys have viewers (`notify` of a namespace), by outcome: taken, refused (4xx), failed (tried again).',
      { outcome: ['taken', 'refused', 'failed'] },
    ),
    workerLost: count(
      'worker_restarts_total',
      'Workers lost: exit, they ended by themselves; silent, they hung and were killed.',
      { reason: ['exit', 'silent'] },
    ),
    lateResult: count(
      'late_results_total',
      'Results dropped because their lease had gone to another worker or failed.',
    ),
  }
}

function outcomeOf(result: Result) {
  if (result.kind === 'failed') return result.code
  if (result.kind === 'value') return 'value'
  return result.status === 304 ? 'not_modified' : 'unchanged'
}

interface Parts {
  primary: Pick<Primary, 'sources' | 'waits' | 'table'>
  workers: Pick<Workers, 'stats'>
  hub: Pick<ValuesHub, 'stats'>
  settings: { inFlightMax: number; cacheBytesMax: number }
}

/** Exports levels, read from the parts at each scrape. */
export function exportLevels({ read }: MetricMakers, { primary, workers, hub, settings }: Parts) {
  const { sources, table } = primary

  read('cache_entries', 'Keys held: values, failures, and keys being fetched.', () => table.stats().keys)
  read(
    'missing_keys',
    'Keys held that the backend never had: an eighth of the memory is theirs at most.',
    table.missing,
  )
  read('user_values', "Users' own values held (per: user).", table.own)
  read('cache_bytes', 'Memory that the keys held are counted as.', () => table.stats().bytes)
  read(
    'cache_wanted_bytes',
    'Of cache_bytes, what cannot be evicted: keys that are watched or waited for.',
    table.wantedBytes,
  )
  read('accounts', 'Users, addresses and networks that pay for a key.', table.accounts)
  read('cache_max_bytes', 'Limit of cache_bytes: FETCHER_CACHE_BYTES_MAX.', () => settings.cacheBytesMax)
  read('fetches_in_flight_max', 'Ceiling of fetch_limit: FETCHER_IN_FLIGHT_MAX.', () => settings.inFlightMax)
  read('workers', 'Workers that take leases.', () => workers.stats().ready)
  read('worker_credit', 'Leases that workers would take on top of those they have.', () => workers.stats().credit)
  read(
    'workers_cpu_seconds_total',
    'CPU time of all workers, ended ones included.',
    () => workers.stats().cpuMs / 1_000,
  )
  read('workers_resident_memory_bytes', 'Resident memory of all workers.', () => workers.stats().residentBytes)
  read('waits_in_flight', 'Requests that a backend answers once the key changes, a thousand to each at most.', () =>
    [...primary.waits.underWay()].map(([origin, value]) => ({ labels: { origin }, value })),
  )
  read('links', 'Gateways linked to this node.', () => hub.stats().links)
  read(
    'link_due_keys',
    'Keys that gateways are due: their latest state is still to be sent, summed over gateways.',
    () => hub.stats().dueKeys,
  )
  read('link_unconfirmed_bytes', 'Bytes sent to gateways and not yet confirmed by them.', () => hub.stats().bytesOut)

  const perLane = (of: (source: KeySource, lane: Lane) => number) => () => {
    const sumOf = (lane: Lane) => [...sources.values()].reduce((sum, source) => sum + of(source, lane), 0)
    return by('lane', Object.fromEntries(lanes.map(lane => [lane, sumOf(lane)])))
  }
  read(
    'fetches_waiting',
    'Fetches queued for a place in flight or for credit of a worker.',
    perLane(({ queue }, lane) => queue.queuedIn(lane)),
  )
  read(
    'fetches_in_flight',
    'Fetches leased to a worker.',
    perLane(({ queue }, lane) => queue.inFlightOf(lane)),
  )

  const perSource = (of: (source: KeySource) => number) => () =>
    [...sources.named()].map(source => ({
      labels: { origin: source.origin.name, namespace: source.namespace },
      value: of(source),
    }))
  read(
    'breaker_open',
    '1 while the circuit breaker of a namespace is open.',
    perSource(({ breaker }) => Number(breaker.isOpen())),
  )
  read(
    'fetch_limit',
    'Fetches that a namespace may have in flight: as many as do not make its backend slower.',
    perSource(({ limit }) => limit.inForce()),
  )
  read(
    'watched_keys',
    'Keys kept fresh: some gateway watches them, or did a second ago.',
    perSource(({ keptKeys }) => keptKeys),
  )
  read(
    'failing_keys',
    'Keys kept fresh whose last fetch failed.',
    perSource(({ failing }) => failing.size),
  )
}
