// What Keycast replaces, beside it: viewers that poll the backend every second, and the same viewers subscribed.
import { BYTES_SUBPROTOCOL } from '@keycast/protocol'
import { WebSocket } from 'ws'
import { readDuration, readInteger, readSize } from '../options.js'
import { createProvider, requestsOf } from '../provider.js'
import { sumOf } from '../scenario.js'
import { allOpen, connectionSum } from './connected.js'

const COUNTS = [
  'requested',
  'answered',
  'refusals',
  'lost',
  'news',
  'values',
  'deltas',
  'notModified',
  'unexpected',
  'opened',
  'closed',
  'dropped',
  'refused',
]
/** After the last poll was due. */
const PATIENCE_MS = 5_000

/**
 * What one way of looking cost.
 *
 * @typedef {object} Way
 * @property {string} name
 * @property {number} bytes received a second by each viewer
 * @property {number} requests of the backend, a second
 * @property {number} full answers of the backend, a second: the rest were 304
 * @property {import('../generator/histogram.js').Histogram} staleness
 * @property {{ backend: number, keycast: number, viewers: number }} cpuMs a second
 * @property {Record<string, number>} counts
 */

/** @type {import('../scenario.js').Scenario} */
export const polling = {
  name: 'polling',
  about:
    'Viewers that poll the backend each second against viewers that subscribe: bytes, backend requests, staleness, CPU.',
  rates: [
    { count: 'news', label: 'changes seen' },
    { count: 'answered', label: 'answers to polls' },
  ],
  needsProvider: true,

  addOptions(command) {
    command
      .option('--clients <n>', 'viewers', readInteger(1, 10_000), 100)
      .option('--keys <n>', 'documents they share', readInteger(1, 1_000), 10)
      .option('--bytes <size>', 'length of a document (with --start)', readSize, 130_000)
      // No multiple of the polling interval, so that changes meet every phase of it.
      .option(
        '--change <duration>',
        "time from one change of a document to the next; with --url the backend's",
        readDuration,
        2_700,
      )
      .option('--seconds <n>', 'how long each way is measured', readInteger(1, 600), 27)
      .option('--key <name>', 'the keys are <name>1, <name>2, …', 'conversation:')
      .option('--path <path>', "the documents' path at the backend is <path>1, <path>2, …", '/conversations/')
  },

  content: ({ bytes, change }) => ({ documentBytes: bytes, changeMs: change }),
  clients: ({ clients }) => clients,

  async run(context, options) {
    const { keys, key, path } = options
    const numbers = Array.from({ length: keys }, (_, number) => number + 1)
    const paths = numbers.map(number => path + number)
    const named = numbers.map(number => key + number)
    const told = numbers.map(number => `told:${number}`)
    const { tellChanged } = context.target

    /** @type {(() => Promise<Way | undefined>)[]} */
    const ways = [
      () => poll(context, options, { name: 'polling', paths, conditional: false }),
      () => poll(context, options, { name: 'polling, If-None-Match', paths, conditional: true }),
      () => subscribe(context, options, { name: 'subscribed', keys: named }),
    ]
    if (tellChanged)
      ways.push(() => subscribe(context, options, { name: 'subscribed, backend tells', keys: told, tellChanged }))
    const speaksBytes = await accepts(context.target.urls[0], BYTES_SUBPROTOCOL)
    if (speaksBytes)
      ways.push(() =>
        subscribe(context, options, { name: 'subscribed, differences', keys: named, subprotocol: BYTES_SUBPROTOCOL }),
      )

    /** @type {Way[]} */
    const done = []
    for (const way of ways) {
      if (context.ended() !== undefined) break
      const measured = await way()
      if (measured !== undefined) done.push(measured)
    }
    context.phase('end')
    return outcomeOf(done, options, [
      'Bytes are what viewers receive, headers included, once everybody has a first value.',
      'Staleness: from a change at the backend to the moment a viewer first sees it.',
      ...(speaksBytes ? [] : [`This gateway does not speak ${BYTES_SUBPROTOCOL}: differences were not measured.`]),
      'Viewers that poll are autocannon, which reads HTTP in JavaScript; those that subscribe are a bare socket. Compare the CPU of backend and Keycast, not of viewers.',
    ])
  },
}

/**
 * @param {import('../scenario.js').Context} context
 * @param {any} options
 * @param {{ name: string, paths: string[], conditional: boolean }} way
 */
async function poll(context, { clients, seconds, change }, { name, paths, conditional }) {
  const origin = /** @type {string} */ (context.target.providerUrl)
  return measure(context, name, {
    clients,
    // As many as there were polls of each: that the groups begin one after the other makes nobody poll less often.
    seconds,
    start: () =>
      context.startPool({
        workload: 'poll',
        settings: { origin, paths, viewers: clients, polls: seconds, changeMs: change, conditional },
        clientsMax: clients,
        urls: [],
      }),
    begin: async () => {},
    wait: pool =>
      context.until(
        () => (pool.totals.counts.answered ?? 0) + (pool.totals.counts.refusals ?? 0) >= clients * seconds,
        seconds * 1_000 + PATIENCE_MS,
      ),
  })
}

/**
 * @param {import('../scenario.js').Context} context
 * @param {any} options
 * @param {{ name: string, keys: string[], subprotocol?: string, tellChanged?: (keys: string[]) => Promise<void> }} way
 */
async function subscribe(context, { clients, seconds, change }, { name, keys, subprotocol, tellChanged }) {
  let telling = true
  const tell = async () => {
    while (telling && tellChanged) {
      // A revision begins with each whole period of the wall clock.
      await new Promise(resolve => setTimeout(resolve, change - (Date.now() % change) + 1))
      if (telling) await tellChanged(keys)
    }
  }
  return measure(context, name, {
    clients,
    start: () =>
      context.startPool({ workload: 'view', settings: { keys, changeMs: change }, clientsMax: clients, subprotocol }),
    async begin(pool) {
      pool.ramp({ everyUs: 1_000, count: clients })
      await allOpen(context, pool, { clients, count: 'answered' })
      tell().catch(error => context.say(`Keycast could not be told of changes: ${error.message}`))
    },
    wait: () => context.wait(seconds * 1_000),
    end() {
      telling = false
    },
  })
}

/**
 * @param {import('../scenario.js').Context} context
 * @param {string} name
 * @param {{ clients: number, seconds?: number, start: () => Promise<import('../generator/pool.js').Pool>,
 *   begin: (pool: import('../generator/pool.js').Pool) => Promise<void>,
 *   wait: (pool: import('../generator/pool.js').Pool) => Promise<boolean>, end?: () => void }} steps
 * @returns {Promise<Way>}
 */
async function measure(context, name, { clients, seconds: nominal, start, begin, wait, end }) {
  const provider = createProvider(/** @type {string} */ (context.target.providerUrl))
  context.phase('begin')
  const pool = await start()
  await begin(pool)
  context.phase(name)
  await provider.reset()
  const { histograms } = pool.totals
  histograms.latency?.reset() // the first values say nothing of changes
  const cpuBefore = await context.watcher.cpuByRole()
  const before = { ...pool.totals.counts }
  const startedMs = performance.now()
  await wait(pool)
  const seconds = nominal ?? (performance.now() - startedMs) / 1_000
  const cpuAfter = await context.watcher.cpuByRole()
  const stats = await provider.stats()
  const received = (pool.totals.counts.bytesIn ?? 0) - (before.bytesIn ?? 0)
  context.phase('end')
  end?.()
  const viewersMs = sumOf(
    context.series.filter(({ phase }) => phase === name),
    second => second.generator.cpuMs,
  )
  await pool.finish()

  /** @param {string} role */
  const cpuOf = role => ((cpuAfter[role] ?? 0) - (cpuBefore[role] ?? 0)) / seconds
  return {
    name,
    bytes: received / clients / seconds,
    requests: requestsOf(stats) / seconds,
    full: sumOf(Object.values(stats.requests), ({ full }) => full) / seconds,
    staleness: pool.totals.histograms.latency,
    cpuMs: {
      backend: cpuOf('data-provider'),
      keycast: cpuOf('gateway') + cpuOf('fetcher') + cpuOf('proxy'),
      viewers: viewersMs / seconds,
    },
    counts: pool.totals.counts,
  }
}

/**
 * @param {Way[]} ways
 * @param {any} options
 * @param {string[]} notes
 * @returns {import('../scenario.js').Outcome}
 */
function outcomeOf(ways, { clients, keys, bytes }, notes) {
  const polled = ways[0]
  // The best that was measured: the last way is the one that sends differences, where there is one.
  const subscribed = ways.find(({ name }) => name === 'subscribed')
  const best = ways.filter(({ name }) => name.startsWith('subscribed')).at(-1)
  /** @param {Way | undefined} way @param {number} percentile */
  const stale = (way, percentile) => way && way.staleness.getValueAtPercentile(percentile) / 1_000
  const counts = addUp(ways.map(way => way.counts))
  const { requested = 0, answered = 0, refusals = 0, lost = 0 } = counts
  const ratio = polled && best && best.bytes > 0 ? polled.bytes / best.bytes : undefined
  return {
    headline:
      polled && subscribed && best
        ? `${clients} viewers of ${keys} documents of ${(bytes / 1_000).toFixed(0)} KB: polling costs each ${kilobytes(polled.bytes)} KB/s and the backend ${polled.requests.toFixed(0)} requests a second; subscribed, ${kilobytes(best.bytes)} KB/s and ${subscribed.requests.toFixed(0)}.`
        : 'Ended before both ways were measured.',
    figures: {
      bytesRatio: { label: 'Bytes of a poller to those of a subscriber', value: ratio, unit: '×', better: 'higher' },
      requestsRatio: {
        label: 'Backend requests, polling to subscribed',
        value: polled && subscribed && polled.requests / Math.max(subscribed.requests, 1e-9),
        unit: '×',
        better: 'higher',
      },
      pollerBytes: { label: 'Bytes per viewer, polling', value: polled?.bytes, unit: 'B/s' },
      subscriberBytes: {
        label: `Bytes per viewer, ${best?.name ?? 'subscribed'}`,
        value: best?.bytes,
        unit: 'B/s',
        better: 'lower',
      },
      staleP99: {
        label: 'Staleness subscribed, 99th percentile',
        value: stale(subscribed, 99),
        unit: 'ms',
        better: 'lower',
      },
      stalePolling: { label: 'Staleness polling, 99th percentile', value: stale(polled, 99), unit: 'ms' },
    },
    counts: Object.fromEntries(COUNTS.map(name => [name, counts[name] ?? 0])),
    sums: [
      {
        text: `asked ${requested} = answered ${answered} + refused ${refusals} + lost ${lost}`,
        holds: requested === answered + refusals + lost,
      },
      connectionSum(counts),
    ],
    latency: subscribed?.staleness,
    latencyLabel: 'Subscribed: from a change at the backend to the moment a viewer sees it',
    tables: [
      {
        title: `${clients} viewers, ${keys} documents of ${(bytes / 1_000).toFixed(0)} KB`,
        columns: [
          'viewers',
          'bytes a viewer, a second',
          'backend requests a second',
          'of them with content',
          'staleness median, ms',
          '99 %, ms',
          'CPU backend, ms/s',
          'Keycast, ms/s',
          'viewers, ms/s',
        ],
        bars: [
          { column: 1, title: 'Bytes on the wire', log: true },
          { column: 2, title: 'Load on the backend' },
          { column: 5, title: 'Staleness' },
          { column: 6, title: 'CPU of the backend' },
        ],
        rows: ways.map(way => [
          way.name,
          way.bytes,
          way.requests,
          way.full,
          stale(way, 50) ?? 0,
          stale(way, 99) ?? 0,
          way.cpuMs.backend,
          way.cpuMs.keycast,
          way.cpuMs.viewers,
        ]),
      },
    ],
    notes,
  }
}

/** @param {number} bytes */
const kilobytes = bytes => (bytes / 1_000).toFixed(bytes < 10_000 ? 1 : 0)

/** @param {Record<string, number>[]} all */
function addUp(all) {
  /** @type {Record<string, number>} */
  const sum = {}
  for (const counts of all) for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count
  return sum
}

/** Whether a gateway takes a subprotocol: it answers an offer of nothing it knows with 400. @param {string} url @param {string} subprotocol */
function accepts(url, subprotocol) {
  /** @type {Promise<boolean>} */
  return new Promise(resolve => {
    const socket = new WebSocket(url, [subprotocol], { rejectUnauthorized: false })
    socket.on('open', () => {
      socket.terminate()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
