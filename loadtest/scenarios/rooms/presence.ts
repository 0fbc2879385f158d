// A storm of joins: how often each member of a room is told while a thousand come within a second.
import { readDuration, readInteger } from '../../command-line/options.ts'
import { openAll } from '../connect-all.ts'
import { cpuFigures, msAt, secondsOf } from '../figures.ts'
import type { Scenario } from '../scenario.ts'
import { logOption } from './log-option.ts'

const SETTLE_MS_MAX = 30_000
const ROOM = 'room:1'

export const presence: Scenario = {
  name: 'presence',
  about: 'Has 1,000 members join one room within 1 s: frames that each is sent until all know the last one.',
  rates: [
    { count: 'joined', label: 'joins' },
    { count: 'differences', label: 'differences delivered' },
  ],
  counts: [
    'opened',
    'refused',
    'dropped',
    'closed',
    'subscribed',
    'requested',
    'joined',
    'refusals',
    'lost',
    'lists',
    'differences',
    'complete',
    'unexpected',
  ],
  references: [],

  addOptions(command) {
    command
      .option('--clients <n>', 'members', readInteger(1, 10_000), 1_000)
      .option('--over <duration>', 'time over which they join', readDuration, 1_000)
      .option('--ramp <n>', 'clients to connect per second', readInteger(1, 10_000), 500)
      .addOption(logOption())
  },

  content: ({ log }) => ({ rooms: { log } }),

  async run(context, { clients, over, ramp }) {
    const settings = { room: ROOM, members: clients, overMs: over }
    const pool = await context.startPool({ workload: 'join', settings, clientsMax: clients })
    context.phase('connect')
    await openAll(context, pool, { clients, count: 'subscribed', everyUs: 1e6 / ramp })

    context.phase('measure')
    const { counts, reasons, histograms } = pool.totals
    pool.tell({ begin: true })
    await context.until(() => counts.complete >= clients, over + SETTLE_MS_MAX)
    context.phase('end')
    await pool.finish()
    const measured = secondsOf(context, 'measure')

    const { latency, frames } = histograms
    const { requested, joined, refusals, lost, complete, unexpected } = counts
    const framesMax = frames.totalCount > 0 ? frames.getValueAtPercentile(100) : undefined
    return {
      headline: `${joined.toLocaleString('en')} members joined within ${over / 1_000} s: at most ${framesMax ?? '—'} frames to each, mean ${frames.mean.toFixed(1)}.`,
      figures: {
        framesMax: { label: 'Frames to one member, at most', value: framesMax, unit: 'frames', better: 'lower' },
        framesMean: { label: 'Frames to a member, mean', value: frames.mean, unit: 'frames', better: 'lower' },
        p99: {
          label: 'Joined, 99th percentile',
          value: msAt(latency, 99),
          unit: 'ms',
          better: 'lower',
        },
        ...cpuFigures(measured, 'joined'),
      },
      counts,
      sums: [
        {
          text: `joins ${requested} = joined ${joined} + refused ${refusals} + lost ${lost}`,
          holds: requested === joined + refusals + lost,
        },
        {
          text: `members ${clients} = those who were told of all ${complete}; unexpected messages ${unexpected}`,
          holds: complete === clients && unexpected === 0,
        },
      ],
      latency,
      latencyLabel: 'From the time a join was due to its answer',
      reasons,
      measured,
      notes: ['A frame is a list of the members, or what changed since the one before.'],
    }
  },
}
