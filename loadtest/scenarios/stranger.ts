// One address without a token and one user take all that they can, in each way that is known, and a third address sends
// absurd bytes. What do 1,000 others notice, who read, publish and join? The same clients are measured without them,
// with them, and without them again.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Histogram } from 'hdr-histogram-js'
import { readDuration, readInteger } from '../command-line/options.ts'
import { createHistogram } from '../generator/histogram.ts'
import { GeneratorError, type Pool } from '../generator/pool.ts'
import { ways } from '../generator/workloads/stranger.ts'
import { openAll } from './connect-all.ts'
import { meanOf, msAt, secondsOf, sumOf } from './figures.ts'
import { logOption } from './rooms/log-option.ts'
import type { Scenario, SeriesSecond, Table } from './scenario.ts'

/** From where they come, on this host: limits are by address. */
const STRANGER = '127.0.0.200'
const USER = '127.0.0.201'
const FUZZER = '127.0.0.202'

const fuzzProgram = fileURLToPath(new URL('../generator/fuzz.ts', import.meta.url))

/** Time for clients to connect, and for code to be compiled. */
const WARM_UP_MS = 5_000

const kinds = ['get', 'publish', 'join'] as const
const phases = ['quiet', 'attack'] as const

export const stranger: Scenario = {
  name: 'stranger',
  about:
    'One address and one user take all that they can, in eight ways, and another sends nonsense: what do 1,000 others notice?',
  rates: [{ count: 'answered', label: 'answers to the others' }],
  counts: ['requested', 'answered', 'refusals', 'lost', 'unexpected', 'dropped', 'sent', 'refused', 'fuzzed'],
  needsTokens: true,
  gateways: 1,
  references: [],

  addOptions(command) {
    command
      .option('--clients <n>', 'others', readInteger(1, 10_000), 1_000)
      .option('--interval <duration>', 'time between two requests of another', readDuration, 2_000)
      .option('--rate <n>', 'messages a second of the address, and again of the user', readInteger(10, 100_000), 5_000)
      .option('--attackers <n>', 'sessions of the address, and again of the user', readInteger(8, 1_000), 100)
      .option('--seconds <n>', 'time to measure with them', readInteger(1, 86_400), 20)
      .option('--quiet <duration>', 'time to measure without them, before and again after', readDuration, 20_000)
      .addOption(logOption())
  },

  content: ({ log }) => ({
    latencyMs: 20,
    refreshMs: 10_000,
    rooms: { log },
    // As it is in production: all addresses are clients', and limits hold.
    settings: {
      GATEWAY_TRUSTED_PROXIES: '127.255.255.255',
      GATEWAY_REQUESTS_PER_SECOND_MAX: '1000',
      GATEWAY_SESSIONS_PER_ADDRESS_MAX: '1000',
      // Full within minutes: from then on memory shows what has no bound.
      GATEWAY_CACHE_BYTES_MAX: '32MiB',
      FETCHER_CACHE_BYTES_MAX: '32MiB',
    },
  }),
  clients: ({ clients, attackers }) => clients + 2 * attackers,

  async run(context, { clients, interval, rate, attackers, seconds, quiet: quietMs }) {
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
    await openAll(context, others, { clients, everyUs: 2_000 })

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
      await openAll(context, taker, { clients: attackers })
      takers.push(taker)
    }
    const fuzz = await startFuzz(context.target.urls[0])
    await context.wait(WARM_UP_MS)
    context.phase('quiet')
    await context.wait(quietMs)
    context.phase('begin')
    for (const taker of takers) taker.tell({ begin: true })
    fuzz.begin()
    await context.wait(WARM_UP_MS)
    context.phase('attack')
    await context.wait(seconds * 1_000)
    context.phase('end')
    const fuzzed = await fuzz.finish()
    for (const taker of takers) await taker.finish()
    await context.wait(WARM_UP_MS)
    context.phase('quiet')
    await context.wait(quietMs)
    context.phase('end')
    await others.finish()

    const attackedSeconds = secondsOf(context, 'attack')
    const { quiet, attack } = latencies
    const sum = (name: string) => takers.reduce((all, { totals }) => all + totals.counts[name], 0)
    const counts: Record<string, number> = {
      ...others.totals.counts,
      sent: sum('sent'),
      refused: sum('refusals'),
      fuzzed: fuzzed.sent,
    }
    const p99 = (of: Record<string, Histogram>) => Math.max(...kinds.map(kind => msAt(of[kind], 99)))
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
      counts,
      sums: [
        {
          text: `requested ${counts.requested} = answered ${counts.answered} + refused ${counts.refusals} + lost ${counts.lost}`,
          holds: counts.requested === counts.answered + counts.refusals + counts.lost,
        },
      ],
      latency: attacked,
      latencyLabel: 'Attacked: from when a request of the others was due to its answer',
      reasons: others.totals.reasons,
      measured: attackedSeconds,
      tables: [
        memoryTable(attackedSeconds),
        {
          title: 'The others',
          columns: ['', 'p50 alone (ms)', 'p50 attacked (ms)', 'p99 alone (ms)', 'p99 attacked (ms)'],
          rows: kinds.map(kind => [
            kind,
            ...[50, 99].flatMap(each => [msAt(quiet[kind], each).toFixed(1), msAt(attack[kind], each).toFixed(1)]),
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
      notes: [
        `Each session of the attackers does one of these: ${Object.keys(ways).join('; ')}.`,
        `The seed of the absurd bytes: ${fuzzed.seed}.`,
      ],
    }
  },
}

/** Absurd bytes to the gateway at this address, by a process of their own: to make them takes CPU time. */
async function startFuzz(url: string) {
  const child = fork(fuzzProgram, [url, FUZZER], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new GeneratorError(`the process that sends absurd bytes ended: ${signal ?? `exit code ${code}`}`)
  })
  ended.catch(() => {})
  await Promise.race([once(child, 'message'), ended])
  return {
    begin: () => child.send('begin'),
    async finish(): Promise<{ sent: number; seed: number }> {
      const said = once(child, 'message')
      child.send('finish')
      const [outcome] = await Promise.race([said, ended])
      return outcome
    },
  }
}

/** Memory in the second half of the attack, when all that fills up once is full: does it still grow? */
function memoryTable(attacked: SeriesSecond[]): Table {
  const half = attacked.slice(Math.floor(attacked.length / 2))
  const names = half[0]?.services.map(({ name }) => name) ?? []
  const rows = names.map(name => {
    const points = half.flatMap(({ at, services }) => {
      const bytes = services.find(service => service.name === name)?.anonymousBytes
      return bytes === undefined ? [] : [{ at, mb: bytes / 1e6 }]
    })
    const { slope, noise } = lineThrough(points)
    const grown = points.length === 0 ? 0 : slope * ((points.at(-1)?.at ?? 0) - points[0].at)
    return [name, meanOf(points, ({ mb }) => mb).toFixed(0), grown.toFixed(1), noise.toFixed(1)]
  })
  return {
    title: 'Memory in the second half of the attack',
    columns: ['', 'mean (MB)', 'grown by (MB)', 'noise (MB)'],
    rows,
    note: 'Without the pages of files that are mapped. Grown by: of a straight line through the seconds. Noise: the standard deviation around it.',
  }
}

/** By least squares. */
function lineThrough(points: { at: number; mb: number }[]) {
  const [meanAt, meanMb] = [meanOf(points, ({ at }) => at), meanOf(points, ({ mb }) => mb)]
  const spread = sumOf(points, ({ at }) => (at - meanAt) ** 2)
  const slope = spread === 0 ? 0 : sumOf(points, ({ at, mb }) => (at - meanAt) * (mb - meanMb)) / spread
  const noise = Math.sqrt(meanOf(points, ({ at, mb }) => (mb - meanMb - slope * (at - meanAt)) ** 2))
  return { slope, noise }
}
