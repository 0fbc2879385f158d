// Clients that come all at once, as after a restart: how many a second are let in, and how long each takes.
import { readInteger } from '../command-line/options.ts'
import type { Span } from '../generator/workloads/welcome.ts'
import { openAll } from './connect-all.ts'
import { cpuFigures, msAt, secondsOf } from './figures.ts'
import type { Scenario } from './scenario.ts'

export const connect: Scenario = {
  name: 'connect',
  about:
    'Connects 10,000 clients as fast as they are let in: connections per second. --token: each with its own token.',
  rates: [{ count: 'welcomed', label: 'clients welcomed' }],
  counts: ['opened', 'welcomed', 'refused', 'dropped', 'closed', 'unexpected'],

  addOptions(command) {
    command
      .option('--clients <n>', 'clients', readInteger(1, 100_000), 10_000)
      .option('--ramp <n>', 'clients to dial per second; 256 of a process at a time', readInteger(1, 100_000), 20_000)
  },

  async run(context, { clients, ramp }) {
    const pool = await context.startPool({ workload: 'welcome', settings: {}, clientsMax: clients })
    context.phase('connect')
    await openAll(context, pool, { clients, count: 'welcomed', everyUs: 1e6 / ramp })
    const measured = secondsOf(context, 'connect')
    context.phase('end')
    const spans = (await pool.finish()) as Span[]

    const { counts, reasons, histograms } = pool.totals
    const { latency } = histograms
    const { welcomed, opened } = counts
    const seconds =
      (Math.max(...spans.map(({ lastUs }) => lastUs)) - Math.min(...spans.map(({ firstUs }) => firstUs))) / 1e6
    const perSecond = welcomed > 0 && seconds > 0 ? welcomed / seconds : undefined
    return {
      headline: `${welcomed.toLocaleString('en')} of ${clients.toLocaleString('en')} clients were let in, ${perSecond === undefined ? 'too few to tell how fast' : `${Math.round(perSecond).toLocaleString('en')} a second`}.`,
      figures: {
        perSecond: { label: 'Connections', value: perSecond, unit: '/s', better: 'higher' },
        p50: { label: 'Median', value: msAt(latency, 50), unit: 'ms', better: 'lower' },
        p99: { label: '99th percentile', value: msAt(latency, 99), unit: 'ms', better: 'lower' },
        ...cpuFigures(measured, 'welcomed'),
      },
      counts,
      sums: [{ text: `connections opened ${opened} = clients welcomed ${welcomed}`, holds: opened === welcomed }],
      latency,
      latencyLabel: 'From dialling to the welcome',
      reasons,
      measured,
      notes: ['Each process dials as many as are let in, 256 at a time: a slow server is dialled less.'],
    }
  },
}
