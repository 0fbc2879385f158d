// What the primary counts, and how Prometheus sees it. No label has more values than there are backends or error codes.

/**
 * @typedef {import('../work/messages.js').Result} Result
 * @typedef {import('./fetching/fetch-queue.js').Lane} Lane
 *
 * @typedef {object} FetchMetrics
 * @property {(how: 'memory' | 'joined' | 'fetched' | 'refused') => void} wanted how a gateway's wish for a key was met
 * @property {(lane: Lane, waitedMs: number) => void} started
 * @property {(result: Result, bytes: number, tookMs: number) => void} ended
 * @property {() => void} reissued
 * @property {(type: 'value' | 'current' | 'failed') => void} answered
 * @property {(tookMs: number) => void} relayed a change went out to a gateway
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
    help: 'Keys gateways asked for: met from memory, by a fetch under way, by a fetch of its own, or refused.',
    labelNames: ['met'],
  })
  const waited = histogram({
    name: 'fetch_wait_seconds',
    help: 'From a fetch being wanted to its being handed to a worker.',
    labelNames: ['lane'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  })
  // not_modified: 304. unchanged: 200 with the bytes that are held. value: other bytes. Otherwise an error code.
  const took = histogram({
    name: 'fetch_seconds',
    help: 'From a fetch being handed to a worker to its result.',
    labelNames: ['outcome'],
    buckets: [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  })
  const bytes = counter({ name: 'fetched_bytes_total', help: 'Bodies of new versions, as they came from workers.' })
  // Of new versions of keys that are watched and were held: made, or why not. no_base: the worker has not the version held;
  // size: the body is too small or too large; time: deltas took their share of it; gain: more than half of the body.
  const deltas = counter({ name: 'deltas_total', help: 'Deltas to new versions, by result.', labelNames: ['result'] })
  const answers = counter({ name: 'answers_total', help: 'States of keys sent to gateways.', labelNames: ['type'] })
  const relay = histogram({
    name: 'relay_seconds',
    help: 'From a changed value being back from a worker to its being sent to a gateway, for each gateway.',
    buckets: [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
  })
  const reissues = counter({ name: 'leases_reissued_total', help: 'Fetches given to a second worker.' })
  const restarts = counter({
    name: 'worker_restarts_total',
    help: 'Workers lost, by whether they ended by themselves or were ended for their silence.',
    labelNames: ['reason'],
  })
  const late = counter({ name: 'late_results_total', help: 'Results of leases no longer in force.' })
  for (const result of ['made', 'no_base', 'size', 'time', 'gain']) deltas.inc({ result }, 0)
  for (const reason of ['exit', 'silent']) restarts.inc({ reason }, 0)
  for (const met of ['memory', 'joined', 'fetched', 'refused']) wanted.inc({ met }, 0)

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
 * Exports what the parts say of themselves at each scrape.
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

  level('watched_keys', 'Keys kept fresh for some gateway.', () => table.stats().kept)
  level('cache_entries', 'Keys something is known of.', () => table.stats().keys)
  level('cache_bytes', 'What these are counted as.', () => table.stats().bytes)
  level('cache_max_bytes', 'What they may be counted as.', () => settings.cacheBytesMax)
  level('fetches_in_flight_max', 'Fetches that may be with workers, for each backend.', () => settings.inFlightMax)
  level('workers', 'Workers that take leases.', () => workers.stats().ready)
  level('worker_credit', 'Leases workers take on top of those they have.', () => workers.stats().credit)
  counter({
    name: 'workers_cpu_seconds_total',
    help: 'CPU time of the workers, those that ended included.',
    collect() {
      this.reset()
      this.inc(workers.stats().cpuMs / 1_000)
    },
  })
  level('workers_resident_memory_bytes', 'Memory of the workers held in RAM.', () => workers.stats().residentBytes)
  level('links', 'Gateways linked to this node.', () => hub.stats().links)
  level('link_lacking_keys', 'Keys whose latest state some gateway is still to be sent.', () => hub.stats().lackingKeys)
  level(
    'link_unconfirmed_bytes',
    'Bytes sent to gateways that they have not said they took.',
    () => hub.stats().bytesOut,
  )

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
  laneLevel('fetches_waiting', 'Fetches not yet with a worker.', (lane, origin) => origin.queue.queuedIn(lane))
  laneLevel('fetches_in_flight', 'Fetches with a worker.', (lane, origin) => origin.queue.inFlightOf(lane))

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
  originLevel('breaker_open', '1 while a backend is given a rest.', ({ breaker }) => Number(breaker.isOpen()))
  originLevel('failing_keys', 'Keys kept fresh whose last try failed.', ({ failing }) => failing.size)
}
