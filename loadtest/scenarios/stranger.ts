// One address without a token and one user take all that they can, in each way that is known. What do 1,000 others notice,
// who read, publish and join? The same clients are measured without them and with them.
import type { Histogram } from 'hdr-histogram-js'
import { readDuration, readInteger } from '../command-line/options.ts'
import { createHistogram } from '../generator/histogram.ts'
import type { Pool } from '../generator/pool.ts'
import { ways } from '../generator/workloads/stranger.ts'
import { allOpen } from './connect-all.ts'
import { logOption } from './rooms/log-option.ts'
import type { Scenario } from './scenario.ts'

const COUNTS = ['requested', 'answered', 'refusals', 'lost', 'unexpected', 'dropped', 'sent', 'refused']

/** From where they come, on this host: limits are by address. */
const STRANGER = '127.0.0.200'
const USER = '127.0.0.201'

/** Time for clients to connect, and for code to be compiled. */
const WARM_UP_MS = 5_000

const kinds = ['get', 'publish', 'join'] as const
const phases = ['quiet', 'attack'] as const

export const stranger: Scenario = {
  name: 'stranger',
  about: 'One address and one user take all that they can, in eight ways: what do 1,000 others notice?',
  rates: [{ count: 'answered', label: 'answers to the others' }],
  needsTokens: true,
  gateways: 1,
  references: [],

  addOptions(command) {
    command
      .option('--clients <n>', 'others', readInteger(1, 10_000), 1_000)
      .option('--interval <duration>', 'time between two requests of another', readDuration, 2_000)
      .option('--rate <n>', 'messages a second of the address, and again of the user', readInteger(100, 100_000), 5_000)
      .option('--attackers <n>', 'sessions of the address, and again of the user', readInteger(8, 1_000), 100)
      .option('--seconds <n>', 'time to measure without them, and again with them', readInteger(1, 600), 20)
      .addOption(logOption())
  },

  content: ({ log }) => ({
    documentBytes: 1_000,
    latencyMs: 20,
    refreshMs: 10_000,
    rooms: { log },
    // As it is in production: all addresses are clients', and limits hold.
    settings: {
      GATEWAY_TRUSTED_PROXIES: '127.255.255.255',
      GATEWAY_REQUESTS_PER_SECOND_MAX: '1000',
      GATEWAY_SESSIONS_PER_ADDRESS_MAX: '1000',
    },
  }),
  clients: ({ clients, attackers }) => clients + 2 * attackers,

  async run(context, { clients, interval, rate, attackers, seconds }) {
    const intervalMs = Math.max(1, Math.round((attackers * 1_000) / rate))
    const rooms = Array.from({ length: Math.ceil(clients / 20) }, (_, number) => `room:${number + 1}`)
    const keys = Array.from({ length: 200 }, (_, number) => `conversation:${number + 1}`)
    const latencies = Object.fromEntries(
      phases.map(phase => [phase, Object.fromEntries(kinds.map(kind => [kind, createHistogram()]))]),
    )
    const seen = Object.fromEntries(phases.map(phase => [phase, { refusals: 0, lost: 0, dropped: 0 }]))
    const others = await context.startPool({
      workload: 'others',
      settings: { intervalMs: interval, keys, rooms },
      clientsMax: clients,
      processes: 1,
      onSecond({ phase, counts }, histograms) {
        if (!(phase in latencies)) return
        for (const kind of kinds) latencies[phase][kind].add(histograms[kind])
        for (const name of ['refusals', 'lost', 'dropped'] as const) seen[phase][name] += counts[name] ?? 0
      },
    })
    context.phase('connect')
    others.ramp({ everyUs: 2_000, count: clients })
    await allOpen(context, others, { clients })

    const takers: Pool[] = []
    for (const [name, load] of [
      ['address', { signing: undefined, from: STRANGER, namespace: 'text' }],
      ['user', { user: 'taker', from: USER, namespace: 'conversation' }],
    ] as const) {
      const { namespace, ...of } = load
      const taker = await context.startPool({
        workload: 'stranger',
        settings: { intervalMs, namespace, rooms, name },
        clientsMax: attackers,
        processes: 1,
        aside: true,
        ...of,
      })
      taker.ramp({ everyUs: 1_000, count: attackers })
      await allOpen(context, taker, { clients: attackers })
      takers.push(taker)
    }
    await context.wait(WARM_UP_MS)
    context.phase('quiet')
    await context.wait(seconds * 1_000)
    context.phase('begin')
    for (const taker of takers) taker.tell({ begin: true })
    await context.wait(WARM_UP_MS)
    context.phase('attack')
    await context.wait(seconds * 1_000)
    context.phase('end')
    for (const taker of takers) await taker.finish()
    await others.finish()

    const ms = (histogram: Histogram, percentile: number) => histogram.getValueAtPercentile(percentile) / 1_000
    const { quiet, attack } = latencies
    const sum = (name: string) => takers.reduce((all, { totals }) => all + (totals.counts[name] ?? 0), 0)
    const counts: Record<string, number> = { ...others.totals.counts, sent: sum('sent'), refused: sum('refusals') }
    const p99 = (of: Record<string, Histogram>) => Math.max(...kinds.map(kind => ms(of[kind], 99)))
    const attacked = createHistogram()
    for (const kind of kinds) attacked.add(attack[kind])
    const errors = seen.attack.refusals + seen.attack.lost
    return {
      headline: `While one address and one user take what they can, the slowest 99th percentile of ${clients} others goes from ${p99(quiet).toFixed(0)} to ${p99(attack).toFixed(0)} ms, with ${errors} errors and ${seen.attack.dropped} disconnects.`,
      figures: {
        p99: { label: 'Slowest 99th percentile, attacked', value: p99(attack), unit: 'ms', better: 'lower' },
        quietP99: { label: 'Slowest 99th percentile, alone', value: p99(quiet), unit: 'ms', better: 'lower' },
        errors: { label: 'Errors of the others, attacked', value: errors, unit: '', better: 'lower' },
        dropped: {
          label: 'Disconnects of the others, attacked',
          value: seen.attack.dropped,
          unit: '',
          better: 'lower',
        },
        cut: { label: 'Disconnects of the attackers', value: sum('dropped'), unit: '' },
      },
      counts: Object.fromEntries(COUNTS.map(name => [name, counts[name] ?? 0])),
      sums: [
        {
          text: `requested ${counts.requested} = answered ${counts.answered} + refused ${counts.refusals} + lost ${counts.lost}`,
          holds: counts.requested === (counts.answered ?? 0) + (counts.refusals ?? 0) + (counts.lost ?? 0),
        },
      ],
      latency: attacked,
      latencyLabel: 'Attacked: from when a request of the others was due to its answer',
      reasons: others.totals.reasons,
      measured: context.series.filter(({ phase }) => phase === 'attack'),
      tables: [
        {
          title: 'The others',
          columns: ['', 'p50 alone (ms)', 'p50 attacked (ms)', 'p99 alone (ms)', 'p99 attacked (ms)'],
          rows: kinds.map(kind => [
            kind,
            ...[50, 99].flatMap(each => [ms(quiet[kind], each).toFixed(1), ms(attack[kind], each).toFixed(1)]),
          ]),
        },
        {
          title: 'Errors and disconnects of the others',
          columns: ['', 'refused', 'unanswered', 'disconnects'],
          rows: phases.map(phase => [
            phase === 'quiet' ? 'alone' : 'attacked',
            seen[phase].refusals,
            seen[phase].lost,
            seen[phase].dropped,
          ]),
        },
        {
          title: 'What the attackers were told',
          columns: ['', 'times'],
          rows: Object.entries(
            takers.reduce<Record<string, number>>((all, { totals }) => {
              for (const [why, times] of Object.entries(totals.reasons)) all[why] = (all[why] ?? 0) + times
              return all
            }, {}),
          ).sort(([, one], [, other]) => other - one),
        },
      ],
      notes: [`Each session of the attackers does one of these: ${Object.keys(ways).join('; ')}.`],
    }
  },
}
