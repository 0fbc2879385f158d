// Measures how many clients the system can hold. They come one after the other, and each gets a document every second,
// until the system cannot keep up. The experiment that this project began with (docs/capacity.md) measured the same.
import { Option } from 'commander'
import { readDuration, readInteger, readSize } from '../command-line/options.ts'
import { cpuFigures, meanOf } from './figures.ts'
import type { Scenario, SeriesSecond } from './scenario.ts'

/** The results of the experiment that this project began with, on 2 and on 4 CPUs. */
const EXPERIMENT = { clients: [304, 333], megabytesPerSecond: [46.34, 47.17] }
/** That experiment's settings. A run that is compared with it must not change them. */
const EXPERIMENT_SETTINGS = { every: 2_000, interval: 1_000, bytes: 130_000, keys: 1 }

/** That experiment's limits: past them a viewer would call it broken. */
const P99_MS_MAX = 1_000
const DELIVERED_RATIO_MIN = 0.95
/** One bad second may be a pause; so many in a row are a limit. */
const BAD_SECONDS = 3
/** With --faster-after: so long at each rate, and the last of them, in clients a second. */
const FASTER_MS = 10_000
const RATE_MAX = 100

/** With fewer requests a second, the ratio is noise. */
const REQUESTS_MIN = 20

export const capacity: Scenario = {
  name: 'capacity',
  about: 'Adds a client every 2 s, each getting a 130 KB document every second, until the system cannot keep up.',
  rates: [
    { count: 'answered', label: 'answers' },
    { count: 'requested', label: 'requests' },
  ],
  counts: [
    'requested',
    'answered',
    'refusals',
    'lost',
    'opened',
    'refused',
    'dropped',
    'closed',
    'unexpected',
    'checked',
    'invalid',
  ],
  references: ['bare', 'naive', 'cluster', 'socket.io', 'socketcluster'],

  addOptions(command) {
    command
      .option('--every <duration>', 'time between two new clients', readDuration, EXPERIMENT_SETTINGS.every)
      .option(
        '--faster-after <n>',
        `from so many clients on ever faster: twice as fast each ${FASTER_MS / 1_000} s, up to ${RATE_MAX} a second`,
        readInteger(1, 100_000),
      )
      // One gateway, and one generator process, hold as many.
      .option('--clients <n>', 'largest number of clients', readInteger(1, 100_000), 18_000)
      .option('--hold <duration>', 'time to hold that many clients', readDuration, 10_000)
      .option(
        '--interval <duration>',
        'time between two requests of a client',
        readDuration,
        EXPERIMENT_SETTINGS.interval,
      )
      .option('--bytes <size>', 'size of a document (with --start)', readSize, EXPERIMENT_SETTINGS.bytes)
      .option(
        '--keys <n>',
        'number of documents, shared evenly among the clients',
        readInteger(1, 10_000),
        EXPERIMENT_SETTINGS.keys,
      )
      .option('--key <name>', 'the keys are <name>1, <name>2, …', 'conversation:')
      .addOption(
        new Option(
          '--study',
          'keep the settings of the experiment this project began with: refuse --every, --interval, --bytes and --keys',
        ).conflicts(['every', 'interval', 'bytes', 'keys']),
      )
  },

  content: ({ bytes }) => ({ documentBytes: bytes }),

  async run(context, options) {
    const { every, clients, hold, interval, bytes, keys, key, fasterAfter = clients } = options
    const watch = watchLimits()
    const pool = await context.startPool({
      workload: 'get',
      settings: { keys: Array.from({ length: keys }, (_, number) => `${key}${number + 1}`), intervalMs: interval },
      clientsMax: clients,
      onSecond: watch.look,
    })
    context.phase('ramp')
    pool.ramp({ everyUs: every * 1_000, count: Math.min(clients, fasterAfter) })
    const over = () => watch.limit() !== undefined
    const opened = (count: number) => () => over() || pool.totals.counts.opened >= count
    await context.until(opened(Math.min(clients, fasterAfter)), Number.POSITIVE_INFINITY)
    for (const everyMs of fasterAndFaster(every)) {
      if (opened(clients)() || context.ended() !== undefined) break
      pool.ramp({ everyUs: everyMs * 1_000, count: clients })
      await context.until(opened(clients), everyMs === 1_000 / RATE_MAX ? Number.POSITIVE_INFINITY : FASTER_MS)
    }
    pool.hold()
    if (!over() && context.ended() === undefined) {
      context.phase('hold')
      await context.until(over, hold)
    }
    const limit = watch.limit()
    context.phase('end')
    await pool.finish()

    const { counts, reasons, histograms } = pool.totals
    const good = context.series
      .filter(second => second.phase === 'hold' || second.phase === 'ramp')
      .filter(watch.wasGood)
    const steady = steadySeconds(good)
    const held = watch.held()
    const megabytes = meanOf(steady, second => (second.counts.bodyBytes ?? 0) / 1e6)
    const cause = limit === undefined ? `no limit reached with ${clients} clients allowed` : limit.why
    return {
      headline: `${held.toLocaleString('en')} clients held at ${(bytes / 1_000).toFixed(0)} KB every ${interval / 1_000} s each, ${megabytes.toFixed(0)} MB/s — ${(held / EXPERIMENT.clients[0]).toFixed(1)}× the ${EXPERIMENT.clients[0]} of the experiment this project began with; ${cause}.`,
      figures: {
        clientsHeld: {
          label: 'Clients held',
          value: held,
          unit: 'clients',
          better: 'higher',
          note: `the experiment: ${EXPERIMENT.clients[0]} on 2 CPUs, ${EXPERIMENT.clients[1]} on 4`,
        },
        megabytesPerSecond: {
          label: 'Documents delivered',
          value: megabytes,
          unit: 'MB/s',
          better: 'higher',
          note: `the experiment: ${EXPERIMENT.megabytesPerSecond.join(' and ')}`,
        },
        p99: { label: '99th percentile at that load', value: worstP99(steady), unit: 'ms', better: 'lower' },
        ...cpuFigures(steady, 'answered'),
      },
      counts,
      sums: sums(counts),
      latency: histograms.latency,
      latencyLabel: 'From the time a request was due to the last byte of its answer',
      reasons,
      // The load that led to the limit, else the load that was held.
      measured:
        limit === undefined
          ? steady
          : context.series.filter(({ at }) => at >= limit.at - BAD_SECONDS && at <= limit.at),
      notes: [
        `What ended it: ${cause}.`,
        `Figures per delivery and MB/s are of ${steady.length} seconds ${steady[0]?.phase === 'hold' ? 'with all clients there' : 'before the limit'}.`,
      ],
    }
  },
}

/**
 * Times between two clients, each half of the one before; the last is that of the highest rate.
 *
 * @param everyMs to begin with
 * @returns milliseconds
 */
export function* fasterAndFaster(everyMs: number): Generator<number> {
  while (everyMs / 2 > 1_000 / RATE_MAX) {
    everyMs /= 2
    yield everyMs
  }
  yield 1_000 / RATE_MAX
}

/**
 * Watches for the system's limit, second by second.
 */
export function watchLimits() {
  const good = new WeakSet<SeriesSecond>()
  let bad = 0
  let held = 0
  let limit: { why: string; at: number } | undefined

  return {
    look(second: SeriesSecond) {
      if (limit !== undefined || second.phase === 'end') return
      const problem = problemOf(second)
      if (problem === undefined) {
        bad = 0
        held = Math.max(held, second.open)
        good.add(second)
        return
      }
      bad += 1
      if (problem.final || bad >= BAD_SECONDS) limit = { why: problem.why, at: second.at }
    },
    limit: () => limit,
    /** Clients there in the last good second. */
    held: () => held,
    wasGood: (second: SeriesSecond) => good.has(second),
  }
}

function problemOf({ counts, latency }: SeriesSecond): { why: string; final: boolean } | undefined {
  const { requested = 0, answered = 0, dropped = 0, refused = 0 } = counts
  if (dropped + refused > 0) {
    return { why: `${dropped} connections dropped and ${refused} refused within a second`, final: true }
  }
  if (latency !== undefined && latency.p99Ms > P99_MS_MAX) {
    return { why: `the 99th percentile passed ${P99_MS_MAX} ms`, final: false }
  }
  if (requested >= REQUESTS_MIN && answered < requested * DELIVERED_RATIO_MIN) {
    return { why: `fewer than ${DELIVERED_RATIO_MIN * 100} % of the requests were answered`, final: false }
  }
  return undefined
}

/** The seconds the figures are taken from: those with all clients there, else the last ones that were good. */
function steadySeconds(good: SeriesSecond[]) {
  // The first second of the hold has part of the ramp in it.
  const held = good.filter(({ phase }) => phase === 'hold').slice(1)
  return held.length >= 3 ? held : good.slice(-5)
}

const worstP99 = (seconds: SeriesSecond[]) => Math.max(0, ...seconds.map(({ latency }) => latency?.p99Ms ?? 0))

export function sums(counts: Record<string, number>) {
  const { requested = 0, answered = 0, refusals = 0, lost = 0, unexpected = 0, invalid = 0 } = counts
  return [
    {
      text: `requested ${requested} = answered ${answered} + refused ${refusals} + lost ${lost}`,
      holds: requested === answered + refusals + lost,
    },
    {
      text: `messages nobody asked for: ${unexpected}; answers that were no valid value: ${invalid}`,
      holds: unexpected + invalid === 0,
    },
  ]
}
