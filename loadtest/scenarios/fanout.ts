// Many small changes to many: how many deliveries a second a gateway makes, and how late they get under that load.
import { readInteger } from '../command-line/options.ts'
import { msAt } from './figures.ts'
import type { Scenario } from './scenario.ts'
import { measureTicks, NOTHING_CAME, tickCounts } from './ticks.ts'

/** A key is asked for no more often than this. */
const CHANGE_MS_MIN = 100

export const fanout: Scenario = {
  name: 'fanout',
  about: 'Sends 100 small updates a second to each of 1,000 clients: latency of each update.',
  rates: [{ count: 'values', label: 'values delivered' }],
  counts: tickCounts,

  addOptions(command) {
    command
      .option('--clients <n>', 'clients', readInteger(1, 100_000), 1_000)
      .option('--ramp <n>', 'clients to connect per second', readInteger(1, 10_000), 500)
      .option('--updates <n>', 'updates per client per second; a multiple of 10', readInteger(10, 1_000), 100)
      .option('--seconds <n>', 'time to measure', readInteger(1, 600), 10)
      .option('--key <name>', 'the keys are <name>1, <name>2, …', 'tick:')
  },

  problem: ({ updates }) =>
    updates % (1_000 / CHANGE_MS_MIN) === 0 ? undefined : '--updates must be a multiple of 10',
  content: () => ({ tickMs: CHANGE_MS_MIN }),

  async run(context, { clients, ramp, updates, seconds, key }) {
    const keys = Array.from({ length: (updates * CHANGE_MS_MIN) / 1_000 }, (_, number) => `${key}${number + 1}`)
    const changes = (seconds * 1_000) / CHANGE_MS_MIN
    const ticks = await measureTicks(context, { clients, ramp, keys, changes, changeMs: CHANGE_MS_MIN })
    const { latency, subscribers, counts, perSecond, replaced, lost } = ticks
    const came = latency.totalCount > 0
    const mean = latency.mean / 1_000
    const p99 = msAt(latency, 99)
    return {
      headline: !came
        ? NOTHING_CAME
        : `${subscribers.toLocaleString('en')} subscribers × ${updates} updates a second: mean ${mean.toFixed(1)} ms, 99th percentile ${p99.toFixed(1)} ms, ${((counts.received / Math.max(1, counts.sent)) * 100).toFixed(1)} % of all updates delivered.`,
      figures: {
        mean: { label: 'Mean latency', value: came ? mean : undefined, unit: 'ms', better: 'lower' },
        p99: { label: '99th percentile', value: came ? p99 : undefined, unit: 'ms', better: 'lower' },
        deliveries: { label: 'Deliveries', value: perSecond, unit: '/s', better: 'higher' },
        replaced: { label: 'Replaced by newer ones', value: replaced, unit: 'deliveries', better: 'lower' },
        lost: { label: 'Lost', value: lost, unit: 'deliveries', better: 'lower' },
        ...ticks.cpu,
      },
      counts,
      sums: ticks.sums,
      latency,
      latencyLabel: 'From the time in the value (the backend made it) to its last byte at the client',
      reasons: ticks.reasons,
      measured: ticks.measured,
      notes: ticks.notes,
    }
  },
}
