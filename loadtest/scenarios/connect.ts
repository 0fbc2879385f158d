// Clients that come all at once, as after a restart: how many a second are let in, and how long each takes.
import { readInteger } from '../command-line/options.ts'
import type { Span } from '../generator/workloads/welcome.ts'
import { allOpen, connectionSum } from './connect-all.ts'
import { cpuFigures } from './figures.ts'
import type { Scenario } from './scenario.ts'

const COUNTS = ['opened', 'welcomed', 'refused', 'dropped', 'closed', 'unexpected']

export const connect: Scenario = {
  name: 'connect',
  about:
    'Connects 10,000 clients as fast as they are let in: connections per second. --token: each with its own token.',
  rates: [{ count: 'welcomed', label: 'clients welcomed' }],

  addOptions(command) {
    command
      .option('--clients <n>', 'clients', readInteger(1, 100_000), 10_000)
      .option('--ramp <n>', 'clients to dial per second; 256 of a process at a time', readInteger(1, 100_000), 20_000)
  },

  content: () => ({ documentBytes: 1_000 }),
  clients: ({ clients }) => clients,

  async run(context, { clients, ramp }) {
    const pool = await context.startPool({ workload: 'welcome', settings: {}, clientsMax: clients })
    context.phase('connect')
    pool.ramp({ everyUs: 1e6 / ramp, count: clients })
    await allOpen(context, pool, { clients, count: 'welcomed' })
    const measured = context.series.filter(({ phase }) => phase === 'connect')
    context.phase('end')
    const spans = (await pool.finish()) as Span[]

    const { counts, reasons, histograms } = pool.totals
    const { latency } = histograms
    const { welcomed = 0, opened = 0 } = counts
    const seconds =
      (Math.max(...spans.map(({ lastUs }) => lastUs)) - Math.min(...spans.map(({ firstUs }) => firstUs))) / 1e6
    const perSecond = welcomed > 0 && seconds > 0 ? welcomed / seconds : undefined
    return {
      headline: `${welcomed.toLocaleString('en')} of ${clients.toLocaleString('en')} clients were let in, ${perSecond === undefined ? 'too few to tell how fast' : `${Math.round(perSecond).toLocaleString('en')} a second`}.`,
      figures: {
        perSecond: { label: 'Connections', value: perSecond, unit: '/s', better: 'higher' },
        p50: { label: 'Median', value: latency.getValueAtPercentile(50) / 1_000, unit: 'ms', better: 'lower' },
        p99: { label: '99th percentile', value: latency.getValueAtPercentile(99) / 1_000, unit: 'ms', better: 'lower' },
        ...cpuFigures(measured, 'welcomed'),
      },
      counts: Object.fromEntries(COUNTS.map(name => [name, counts[name] ?? 0])),
      sums: [
        { text: `connections opened ${opened} = clients welcomed ${welcomed}`, holds: opened === welcomed },
        connectionSum(counts),
      ],
      latency,
      latencyLabel: 'From dialling to the welcome',
      reasons,
      measured,
      notes: ['Each process dials as many as are let in, 256 at a time: a slow server is dialled less.'],
    }
  },
}
