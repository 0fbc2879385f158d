// Does every change reach every client, and how soon? Many clients watch one key that changes twice a second, or each one
// of several that change at different times.
import { readDuration, readInteger } from '../command-line/options.ts'
import { msAt } from './figures.ts'
import type { Scenario } from './scenario.ts'
import { meanSpreadMs, measureTicks, NOTHING_CAME, tickCounts } from './ticks.ts'

export const ticker: Scenario = {
  name: 'ticker',
  about: 'Has many clients watch a key that changes every 500 ms: latency of each change at each client, all counted.',
  rates: [{ count: 'values', label: 'values delivered' }],
  counts: tickCounts,
  references: ['bare', 'naive', 'cluster', 'socket.io', 'socketcluster'],

  addOptions(command) {
    command
      .option('--clients <n>', 'clients', readInteger(1, 100_000), 1_000)
      .option('--ramp <n>', 'clients to connect per second', readInteger(1, 10_000), 500)
      .option('--changes <n>', 'changes to measure', readInteger(1, 10_000), 120)
      .option('--change <duration>', 'time between two changes; with --url as its namespace has it', readDuration, 500)
      .option('--key <key>', 'the key that changes; with --keys its number is counted up', 'tick:1')
      .option('--keys <n>', 'keys, at different times; each client watches one', readInteger(1, 10_000), 1)
  },

  content: ({ change }) => ({ tickMs: change }),

  problem: ({ keys, clients, key }) =>
    keys > clients
      ? '--keys must not be over --clients'
      : keys > 1 && !/\d$/.test(key)
        ? '--key must end with a number where there are several --keys'
        : undefined,

  async run(context, { clients, ramp, changes, change, key, keys: keyCount }) {
    const [, name, first] = /^(.*?)(\d*)$/.exec(key) ?? []
    const keys = keyCount === 1 ? [key] : Array.from({ length: keyCount }, (_, at) => `${name}${Number(first) + at}`)
    const ticks = await measureTicks(context, { clients, ramp, keys, each: 1, changes, changeMs: change })
    const { latency } = ticks
    const came = latency.totalCount > 0
    const p99 = msAt(latency, 99)
    return {
      headline: !came
        ? NOTHING_CAME
        : `${ticks.seen.length} changes to ${ticks.subscribers.toLocaleString('en')} clients: ${ticks.counts.received.toLocaleString('en')} deliveries, ${ticks.replaced.toLocaleString('en')} replaced by newer ones, ${ticks.lost.toLocaleString('en')} lost, 99 % within ${p99.toFixed(1)} ms.`,
      figures: {
        p99: { label: '99th percentile', value: came ? p99 : undefined, unit: 'ms', better: 'lower' },
        p50: {
          label: 'Median',
          value: came ? msAt(latency, 50) : undefined,
          unit: 'ms',
          better: 'lower',
        },
        spread: { label: 'Change to last client, mean', value: meanSpreadMs(ticks.seen), unit: 'ms', better: 'lower' },
        clients: { label: 'Clients', value: ticks.subscribers, unit: 'clients', better: 'higher' },
        replaced: { label: 'Replaced by newer ones', value: ticks.replaced, unit: 'deliveries', better: 'lower' },
        lost: { label: 'Lost', value: ticks.lost, unit: 'deliveries', better: 'lower' },
        ...ticks.cpu,
      },
      counts: ticks.counts,
      sums: ticks.sums,
      latency,
      latencyLabel: 'From the time in the value (the backend made it) to its last byte at the client',
      reasons: ticks.reasons,
      measured: ticks.measured,
      notes: ticks.notes,
    }
  },
}
