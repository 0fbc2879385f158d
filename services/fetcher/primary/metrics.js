// The metrics of a fetcher node. No label has more values than there are backends or error codes.

/**
 * @typedef {import('../work/messages.js').Result} Result
 * @typedef {import('./fetching/fetch-queue.js').Lane} Lane
 *
 * @typedef {object} FetchMetrics
 * @property {(how: 'memory' | 'kept' | 'joined' | 'fetched' | 'refused') => void} wanted how a gateway's want of a key
 *   was met
 * @property {(lane: Lane, waitedMs: number) => void} started
 * @property {(result: Result, bytes: number, tookMs: number) => void} ended
 * @property {() => void} reissued
 * @property {(type: import('@keycast/backbone').Answer['type']) => void} answered
 * @property {(tookMs: number) => void} relayed a change went out to a gateway
 * @property {(why: 'forbidden' | 'expired') => void} ownEnded a user's own value was dropped
 *
 * @typedef {import('./workers/workers.js').WorkerMetrics} WorkerMetrics
 */

/** @type {Lane[]} */
const lanes = ['cold', 'refresh']

/**
 * @param {Pick<import('@keycast/service').Metrics, 'counter' | 'gauge' | 'histogram'>} metrics
 * @returns {FetchMetrics & WorkerMetrics}
 */
export function createFetcherMetrics({ counter, histogram }) {
  const wanted = counter({
    name: 'wants_total',
    help: 'Watches and gets by gateways: met from memory, kept as another node left them, by a fetch under way, by a new fetch, or refused.',
    labelNames: ['met'],
  })
  const waited = histogram({
    name: 'fetch_wait_seconds',
    help: 'From a fetch being queued to its lease going to a worker.',
    labelNames: ['lane'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  })
  // not_modified: 304. unchanged: 200 with the bytes that are held. value: other bytes. Otherwise an error code.
  const took = histogram({
    name: 'fetch_seconds',
    help: 'From a lease going to a worker to its result.',
    labelNames: ['outcome'],
    buckets: [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
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
  for (const met of ['memory', 'kept', 'joined', 'fetched', 'refused']) wanted.inc({ met }, 0)

  return {
    wanted: met => wanted.inc({ met }),
    started: (lane, waitedMs) => waited.observe({ lane }, waitedMs / 1_000),
    ended: (result, bodyBytes, tookMs) => {
      took.observe({ outcome: labelOf(result) }, tookMs / 1_000)
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

/** @param {Result} result */
function labelOf(result) {
  if (result.kind === 'failed') return result.code
  if (result.kind === 'value') return 'value'
  return result.status === 304 ? 'not_modified' : 'unchanged'
}

/**
 * Exports levels, read from the parts at each scrape.
 *
 * @param {Pick<import('@keycast/service').Metrics, 'counter' | 'gauge'>} metrics
 * @param {object} parts
 * @param {Pick<import('./primary.js').Primary, 'origins' | 'table'>} parts.primary
 * @param {Pick<import('./workers/workers.js').Workers, 'stats'>} parts.workers
 * @param {Pick<import('@keycast/backbone').Hub, 'stats'>} parts.hub
 * @param {{ inFlightMax: number, cacheBytesMax: number }} parts.settings
 */
export function exportLevels({ counter, gauge }, { primary, workers, hub, settings }) {
  /** @param {string} name @param {string} help @param {() => number} read */
  const level = (name, help, read) =>
    gauge({
      name,
      help,
      collect() {
        this.set(read())
      },
    })
  const { origins, table } = primary

  level('watched_keys', 'Keys kept fresh: some gateway watches them, or did a second ago.', () => table.stats().kept)
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
    'link_lacking_keys',
    'Keys that gateways are due: their latest state is still to be sent, summed over gateways.',
    () => hub.stats().lackingKeys,
  )
  level('link_unconfirmed_bytes', 'Bytes sent to gateways and not yet confirmed by them.', () => hub.stats().bytesOut)

  /** @param {string} name @param {string} help @param {(lane: Lane, origin: import('./origins/origins.js').Origin) => number} read */
  const laneLevel = (name, help, read) =>
    gauge({
      name,
      help,
      labelNames: ['lane'],
      collect() {
        for (const lane of lanes) {
          let sum = 0
          for (const origin of origins.values()) sum += read(lane, origin)
          this.set({ lane }, sum)
        }
      },
    })
  laneLevel('fetches_waiting', 'Fetches queued for a place in flight or for credit of a worker.', (lane, origin) =>
    origin.queue.queuedIn(lane),
  )
  laneLevel('fetches_in_flight', 'Fetches leased to a worker.', (lane, origin) => origin.queue.inFlightOf(lane))

  /** @param {string} name @param {string} help @param {(origin: import('./origins/origins.js').Origin) => number} read */
  const originLevel = (name, help, read) =>
    gauge({
      name,
      help,
      labelNames: ['origin'],
      collect() {
        for (const origin of origins.values()) this.set({ origin: origin.name }, read(origin))
      },
    })
  originLevel('breaker_open', '1 while the circuit breaker of a backend is open.', ({ breaker }) =>
    Number(breaker.isOpen()),
  )
  originLevel(
    'fetch_limit',
    'Fetches that may be in flight to a backend: as many as do not make it slower.',
    ({ limit }) => limit.inForce(),
  )
  originLevel('failing_keys', 'Keys kept fresh whose last fetch failed.', ({ failing }) => failing.size)
}
