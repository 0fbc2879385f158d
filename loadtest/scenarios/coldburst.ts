// Are cold keys fetched in parallel? Gets many of them at once, from a backend that takes its time for each.
import { readDuration, readInteger, readSize } from '../command-line/options.ts'
import { nowUs } from '../generator/clock.ts'
import type { RoundOutcome } from '../generator/workloads/burst.ts'
import { createProvider, requestsOf } from '../system/provider.ts'
import { openAll } from './connect-all.ts'
import { sumOf } from './figures.ts'
import type { Scenario } from './scenario.ts'

/** Between telling the generators of a round and its beginning. */
const AHEAD_US = 200_000
const REST_MS = 300
/** Values that have not come by then count as lost. */
const ROUND_MS_MAX = 20_000

export const coldburst: Scenario = {
  name: 'coldburst',
  about: 'Gets 1,000 cold keys at once from a backend that takes 50 ms for each: time to the last value.',
  rates: [{ count: 'answered', label: 'values' }],
  counts: ['opened', 'refused', 'dropped', 'closed', 'requested', 'answered', 'refusals', 'lost', 'unexpected'],
  needsProvider: true,

  addOptions(command) {
    command
      .option('--keys <n>', 'keys per round', readInteger(1, 5_000), 1_000)
      .option('--bytes <size>', 'size of a value (with --start)', readSize, 1_000)
      .option('--latency <duration>', 'response time of the backend (with --start)', readDuration, 50)
      .option('--sessions <n>', 'sessions that share the keys', readInteger(1, 1_000), 1)
      .option('--rounds <n>', 'rounds to measure, each with new keys', readInteger(1, 100), 5)
      .option('--warm-up <n>', 'rounds before those, for the JavaScript engines to warm up', readInteger(0, 100), 10)
      .option('--key <name>', 'the keys are <name> and a suffix that was never used', 'conversation:')
  },

  content: ({ bytes, latency }) => ({ still: true, documentBytes: bytes, latencyMs: latency, idle: true }),
  clients: ({ sessions }) => sessions,
  problem: ({ sessions, keys }) => (sessions > keys ? '--sessions must not be more than --keys' : undefined),

  async run(context, { keys, sessions, rounds, warmUp, key }) {
    const provider = createProvider(context.target.providerUrl as string)
    const pool = await context.startPool({ workload: 'burst', settings: { sessions }, clientsMax: sessions })
    context.phase('connect')
    await openAll(context, pool, { clients: sessions })
    context.phase('measure')

    const backend: { round: number; concurrencyMax: number; requests: number }[] = []
    const prefix = Date.now().toString(36)
    for (let round = 1; round <= warmUp + rounds && context.ended() === undefined; round++) {
      await provider.reset()
      const names = Array.from({ length: keys }, (_, number) => `${key}${prefix}-${round}-${number}`)
      pool.tell({ round, keys: names, atUs: nowUs() + AHEAD_US })
      const { counts } = pool.totals
      const settled = () => counts.answered + counts.refusals >= round * keys
      await context.until(settled, ROUND_MS_MAX)
      // Before the watched keys are asked again, which the backend would count too.
      const stats = await provider.stats()
      backend.push({ round, concurrencyMax: stats.concurrencyMax, requests: requestsOf(stats) })
      await context.wait(REST_MS)
    }
    context.phase('end')
    const outcomes = (await pool.finish()) as RoundOutcome[][]

    const done = backend.map(({ round, concurrencyMax, requests }) => {
      const parts = outcomes.flat().filter(part => part.round === round)
      const lastMs = Math.max(0, ...parts.map(({ lastUs }) => lastUs / 1_000))
      return { round, answered: sumOf(parts, part => part.answered), lastMs, concurrencyMax, requests }
    })
    const { counts, reasons, histograms } = pool.totals
    const { requested, answered, refusals, lost } = counts
    const measured = done.slice(warmUp)
    // A round that some keys ended with an error has no last value.
    const times = measured
      .filter(({ answered }) => answered === keys)
      .map(({ lastMs }) => lastMs)
      .sort((a, b) => a - b)
    const medianMs = times[Math.floor((times.length - 1) / 2)]
    return {
      headline: `${keys.toLocaleString('en')} cold keys at once: the last value after ${medianMs?.toFixed(0) ?? '—'} ms (median of ${times.length} rounds), the backend asked ${Math.max(0, ...done.map(({ concurrencyMax }) => concurrencyMax))} at a time.`,
      figures: {
        lastMs: { label: 'Time to the last value, median', value: medianMs, unit: 'ms', better: 'lower' },
        lastMsMax: { label: 'Time to the last value, slowest round', value: times.at(-1), unit: 'ms', better: 'lower' },
        firstMs: {
          label: 'Time to the last value, first round of all',
          value: done[0]?.answered === keys ? done[0].lastMs : undefined,
          unit: 'ms',
        },
        concurrency: {
          label: 'Requests at a time at the backend',
          value: Math.max(0, ...done.map(({ concurrencyMax }) => concurrencyMax)),
          unit: 'requests',
        },
        requestsPerKey: {
          label: 'Backend requests per key',
          value: sumOf(done, ({ requests }) => requests) / Math.max(1, done.length * keys),
          unit: 'requests',
          better: 'lower',
        },
      },
      counts,
      sums: [
        ...measured.map(({ round, answered }) => ({
          text: `round ${round}: values ${answered} = keys ${keys}`,
          holds: answered === keys,
        })),
        {
          text: `keys asked for ${requested} = values ${answered} + errors ${refusals} + lost ${lost}`,
          holds: requested === answered + refusals + lost,
        },
        {
          text: `${histograms.latency.totalCount} times taken = ${answered} values`,
          holds: histograms.latency.totalCount === answered,
        },
      ],
      latency: histograms.latency,
      latencyLabel: 'From the instant all keys were due to each value',
      reasons,
      tables: [
        {
          title: 'Rounds',
          columns: ['round', 'values', 'last after, ms', 'backend requests', 'at a time'],
          rows: done.map(({ round, answered, lastMs, requests, concurrencyMax }) => [
            round > warmUp ? round : `${round}, warm-up`,
            answered,
            lastMs,
            requests,
            concurrencyMax,
          ]),
        },
      ],
      notes: [
        ...(times.length < measured.length
          ? [
              `In ${measured.length - times.length} of ${measured.length} rounds not every key got a value: they are in no time above.`,
            ]
          : []),
        "A round's backend requests are counted when its last value has come: a watched key may have been asked again by then.",
      ],
    }
  },
}
