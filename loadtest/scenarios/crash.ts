// A gateway is killed under load: how long its clients are without an answer, and what the others notice.
import { readDuration, readInteger } from '../command-line/options.ts'
import { openAll } from './connect-all.ts'
import { cpuFigures, msAt, secondsOf } from './figures.ts'
import type { Scenario } from './scenario.ts'

/** For clients that are not let in at once. */
const BACK_MS_MAX = 60_000

export const crash: Scenario = {
  name: 'crash',
  about: 'Kills one of two gateways under load: how long its clients are without an answer.',
  rates: [
    { count: 'answered', label: 'pongs' },
    { count: 'back', label: 'clients back' },
  ],
  counts: ['opened', 'refused', 'dropped', 'closed', 'requested', 'answered', 'lost', 'back', 'unexpected'],
  gateways: 2,
  references: ['cluster', 'socket.io', 'socketcluster'],

  addOptions(command) {
    command
      .option('--clients <n>', 'clients', readInteger(2, 100_000), 5_000)
      .option('--ramp <n>', 'clients to connect per second', readInteger(1, 10_000), 1_000)
      .option('--every <duration>', 'time between two pings of a client', readDuration, 500)
      .option('--calm <duration>', 'load before the kill, and after the last client is back', readDuration, 5_000)
      .option(
        '--redial <duration>',
        'a client that is dropped dials again within so long, at random',
        readDuration,
        500,
      )
  },

  problem({ start, gateways = 2, every }) {
    if (start === undefined) return 'crash kills a gateway: it needs --start'
    if (every < 1) return '--every must be 1ms at least'
    return gateways < 2 ? 'crash needs a gateway that is left: --gateways must be 2 at least' : undefined
  },

  async run(context, { clients, ramp, every, calm, redial }) {
    const settings = { intervalMs: Math.round(every), redialMs: redial }
    const pool = await context.startPool({ workload: 'outage', settings, clientsMax: clients })
    context.phase('ramp')
    await openAll(context, pool, { clients, count: 'entered', everyUs: 1e6 / ramp })
    context.phase('before')
    await context.wait(calm)
    const { counts, reasons, histograms } = pool.totals
    histograms.latency.reset()

    context.phase('killed')
    context.target.killGateway?.()
    const isOver = () => counts.dropped > 0 && counts.back >= counts.dropped
    await context.until(isOver, BACK_MS_MAX)
    context.phase('after')
    await context.wait(calm)
    const hit = counts.dropped
    context.phase('end')
    await pool.finish()

    const { latency, outage } = histograms
    const { requested, answered, lost, back, unexpected } = counts
    const seconds = (percentile: number) =>
      outage.totalCount === 0 ? undefined : outage.getValueAtPercentile(percentile) / 1e6
    return {
      headline: `${hit.toLocaleString('en')} of ${clients.toLocaleString('en')} clients lost their gateway: without an answer for ${seconds(50)?.toFixed(2) ?? '—'} s in the middle, ${seconds(100)?.toFixed(2) ?? '—'} s at most.`,
      figures: {
        outageMax: { label: 'Longest without an answer', value: seconds(100), unit: 's', better: 'lower' },
        outageP99: { label: '99 % of those hit', value: seconds(99), unit: 's', better: 'lower' },
        outageP50: {
          label: 'Half of those hit',
          value: seconds(50),
          unit: 's',
          better: 'lower',
          note: `each dials again within ${redial / 1_000} s, at random`,
        },
        hit: { label: 'Clients hit', value: hit, unit: 'clients' },
        ...cpuFigures(secondsOf(context, 'before'), 'answered'),
      },
      counts,
      sums: [
        { text: `clients dropped ${hit} = those who are back ${back}`, holds: hit === back && hit > 0 },
        {
          text: `pings ${requested} = pongs ${answered} + lost ${lost}; unexpected messages ${unexpected}`,
          holds: requested === answered + lost && unexpected === 0,
        },
      ],
      latency: outage,
      latencyLabel: 'From the end of a connection to the next answer',
      reasons,
      measured: context.series.filter(({ phase }) => phase === 'killed' || phase === 'after'),
      notes: [
        `Of all pings from the kill on, 99.9 % were answered within ${msAt(latency, 99.9).toFixed(0)} ms of being due, the last after ${(latency.maxValue / 1_000).toFixed(0)} ms.`,
      ],
    }
  },
}
