// Tokens that are none, sent by the thousand from one address: what do they cost the others? The same clients are measured
// without them and with them.
import { readDuration, readInteger } from '../command-line/options.ts'
import { createHistogram } from '../generator/histogram.ts'
import { openAll } from './connect-all.ts'
import { msAt, secondsOf } from './figures.ts'
import type { Scenario } from './scenario.ts'

/** From where garbage comes, on this host: an address of its own, as limits are by address. */
const ATTACKER = '127.0.0.200'

/** Time for clients to connect, and for code to be compiled. */
const WARM_UP_MS = 2_000

/** The allowed rise of the 99th percentile. */
const RISE_MS_MAX = 20

export const garbage: Scenario = {
  name: 'garbage',
  about: 'Sends 10,000 garbage tokens a second from one address: how much later are the answers of other clients?',
  rates: [{ count: 'answered', label: 'answers to bystanders' }],
  counts: ['requested', 'answered', 'refusals', 'lost', 'unexpected', 'sent', 'refused', 'unanswered'],
  needsTokens: true,

  addOptions(command) {
    command
      .option('--clients <n>', 'bystanders', readInteger(1, 10_000), 50)
      .option('--interval <duration>', 'time between two requests of a bystander', readDuration, 100)
      .option('--rate <n>', 'garbage tokens a second', readInteger(100, 100_000), 10_000)
      .option('--attackers <n>', 'sessions that send them', readInteger(1, 1_000), 100)
      .option('--seconds <n>', 'time to measure without them, and again with them', readInteger(1, 600), 10)
      .option('--key <key>', 'the key bystanders get', 'conversation:1')
  },

  problem: ({ rate, attackers }) =>
    rate <= attackers * 1_000 ? undefined : '--rate must not be over 1,000 for each of --attackers',
  clients: ({ clients, attackers }) => clients + attackers,

  async run(context, { clients, interval, rate, attackers, seconds, key }) {
    const intervalMs = Math.max(1, Math.round((attackers * 1_000) / rate))
    const crowd = await context.startPool({
      workload: 'garbage',
      settings: { signing: context.target.signing, intervalMs },
      clientsMax: attackers,
      processes: 1,
      signing: undefined,
      from: ATTACKER,
      aside: true,
    })
    context.phase('connect')
    await openAll(context, crowd, { clients: attackers })

    const latencies = { quiet: createHistogram(), garbage: createHistogram() }
    const bystanders = await context.startPool({
      workload: 'get',
      settings: { keys: [key], intervalMs: interval },
      clientsMax: clients,
      processes: 1,
      onSecond({ phase }, histograms) {
        if (phase === 'quiet' || phase === 'garbage') latencies[phase].add(histograms.latency)
      },
    })
    await openAll(context, bystanders, { clients })
    await context.wait(WARM_UP_MS)
    context.phase('quiet')
    await context.wait(seconds * 1_000)
    context.phase('begin')
    crowd.tell({ begin: true })
    await context.wait(WARM_UP_MS)
    context.phase('garbage')
    const startMs = performance.now()
    const before = crowd.totals.counts.sent
    await context.wait(seconds * 1_000)
    const sentPerSecond = (crowd.totals.counts.sent - before) / ((performance.now() - startMs) / 1_000)
    context.phase('end')
    await crowd.finish()
    await bystanders.finish()

    const { quiet, garbage: attacked } = latencies
    const rise = msAt(attacked, 99) - msAt(quiet, 99)
    const of = crowd.totals.counts
    const bystander = bystanders.totals
    const counts: Record<string, number> = {
      ...bystander.counts,
      sent: of.sent,
      refused: of.answered,
      unanswered: of.lost,
      unexpected: bystander.counts.unexpected + of.unexpected,
    }
    return {
      headline: `With ${Math.round(sentPerSecond).toLocaleString('en')} garbage tokens a second the 99th percentile of others went from ${msAt(quiet, 99).toFixed(1)} to ${msAt(attacked, 99).toFixed(1)} ms.`,
      figures: {
        rise: {
          label: '99th percentile, raised by',
          value: rise,
          unit: 'ms',
          better: 'lower',
          note: `the target: under ${RISE_MS_MAX} ms`,
        },
        quietP99: { label: '99th percentile without garbage', value: msAt(quiet, 99), unit: 'ms', better: 'lower' },
        p99: { label: '99th percentile with garbage', value: msAt(attacked, 99), unit: 'ms', better: 'lower' },
        garbage: { label: 'Garbage tokens', value: sentPerSecond, unit: '/s' },
      },
      counts,
      sums: [
        {
          text: `garbage sent ${counts.sent} = refused ${counts.refused} + unanswered ${counts.unanswered}`,
          holds: counts.sent === counts.refused + counts.unanswered,
        },
        {
          text: `requested ${counts.requested} = answered ${counts.answered} + refused ${counts.refusals} + lost ${counts.lost}`,
          holds: counts.requested === counts.answered + counts.refusals + counts.lost,
        },
      ],
      latency: attacked,
      latencyLabel: 'With garbage: from the time a request was due to the last byte of its answer',
      reasons: bystander.reasons,
      measured: secondsOf(context, 'garbage'),
      notes: [
        'The limit of requests a second is off in a system that --start started: with it the attackers would be cut off.',
      ],
    }
  },
}
