// Publishes alone: how many a second the journal keeps and acknowledges, and how soon.
import { readInteger } from '../../command-line/options.ts'
import { connectAndMeasure } from '../connect-all.ts'
import { cpuFigures, msAt, sumOf } from '../figures.ts'
import type { Scenario } from '../scenario.ts'
import { logOption } from './log-option.ts'

export const publish: Scenario = {
  name: 'publish',
  about: 'Has 200 clients publish into 100 rooms, 16 under way each: acknowledged publishes a second, and latency.',
  rates: [{ count: 'published', label: 'publishes acknowledged' }],
  counts: ['opened', 'refused', 'dropped', 'closed', 'requested', 'published', 'refusals', 'lost', 'unexpected'],
  references: [],

  addOptions(command) {
    command
      .option('--clients <n>', 'clients', readInteger(1, 20_000), 200)
      .option('--rooms <n>', 'rooms', readInteger(1, 100_000), 100)
      .option('--window <n>', 'publishes each client has under way', readInteger(1, 1_000), 16)
      .option(
        '--rate <n>',
        'publishes a second of all clients, at fixed times, in place of --window',
        readInteger(1, 1e6),
      )
      .option('--seconds <n>', 'time to measure', readInteger(1, 600), 10)
      .addOption(logOption())
  },

  problem: ({ clients, rate }) =>
    rate !== undefined && !Number.isInteger((clients * 1_000) / rate)
      ? '--rate must leave whole milliseconds between two publishes of a client'
      : undefined,
  content: ({ log }) => ({ rooms: { log } }),

  async run(context, { clients, rooms: roomCount, window, rate, seconds }) {
    const rooms = Array.from({ length: roomCount }, (_, number) => `room:${number + 1}`)
    const everyMs = rate === undefined ? undefined : (clients * 1_000) / rate
    const settings = { rooms, window, everyMs }
    const pool = await context.startPool({ workload: 'publish', settings, clientsMax: clients })
    const measured = await connectAndMeasure(context, pool, { clients, seconds })
    const { counts, reasons, histograms } = pool.totals
    const { latency } = histograms
    const perSecond = sumOf(measured, second => second.counts.published) / Math.max(1, measured.length)
    const { requested, published, refusals, lost, unexpected } = counts
    const ms = (percentile: number) => msAt(latency, percentile)
    return {
      headline: `${clients} clients, ${rate === undefined ? `${window} under way each` : `${rate} a second asked`}, ${roomCount} rooms: ${Math.round(perSecond).toLocaleString('en')} publishes acknowledged a second, 99th percentile ${ms(99).toFixed(1)} ms.`,
      figures: {
        perSecond: { label: 'Publishes acknowledged', value: perSecond, unit: '/s', better: 'higher' },
        p50: { label: 'Median', value: ms(50), unit: 'ms', better: 'lower' },
        p99: { label: '99th percentile', value: ms(99), unit: 'ms', better: 'lower' },
        ...cpuFigures(measured, 'published'),
      },
      counts,
      sums: [
        {
          text: `publishes ${requested} = acknowledged ${published} + refused ${refusals} + lost ${lost}`,
          holds: requested === published + refusals + lost,
        },
        {
          text: `publishes refused ${refusals}, unexpected messages ${unexpected}`,
          holds: refusals + unexpected === 0,
        },
      ],
      latency,
      latencyLabel: `From ${rate === undefined ? 'sending a publish' : 'when a publish was due'} to its acknowledgement`,
      reasons,
      measured,
      notes: [
        rate === undefined
          ? 'With a window a slow journal is asked less: this measures throughput. Latency is the window divided by it.'
          : 'Publishes are due at fixed times, whether or not the journal keeps up.',
      ],
    }
  },
}
