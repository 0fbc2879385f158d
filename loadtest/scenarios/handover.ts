// Values handed over: how many a second are taken, and whether every viewer ends at the last and none goes back.
import { Option } from 'commander'
import { readInteger } from '../command-line/options.ts'
import type { HandoverOutcome } from '../generator/workloads/handover.ts'
import { openAll } from './connect-all.ts'
import { cpuFigures, msAt, perSecondOf, secondsOf } from './figures.ts'
import { logOption } from './rooms/log-option.ts'
import type { Scenario } from './scenario.ts'

/** Until every viewer watches. */
const READY_MS = 30_000

/** Viewers are sent the last values within this time. */
const SETTLE_MS = 3_000

export const handover: Scenario = {
  name: 'handover',
  about: 'Hands over values of 200 bytes to 1,000 keys, in batches, and counts that every viewer ends at the last.',
  rates: [
    { count: 'taken', label: 'values taken' },
    { count: 'values', label: 'values sent to viewers' },
  ],
  counts: [
    'opened',
    'refused',
    'dropped',
    'closed',
    'calls',
    'taken',
    'failed',
    'values',
    'back',
    'refusals',
    'unexpected',
  ],
  references: [],

  addOptions(command) {
    command
      .addOption(
        new Option('--source <source>', 'of the namespace: who keeps the values')
          .choices(['pushed', 'http'])
          .default('pushed'),
      )
      .option('--keys <n>', 'keys', readInteger(1, 100_000), 1_000)
      .option('--writers <n>', 'connections, each with one call under way', readInteger(1, 1_000), 8)
      .option('--lines <n>', 'values in a call', readInteger(1, 10_000), 100)
      .option('--bytes <n>', 'size of a value', readInteger(30, 10_000), 200)
      .option('--viewers <n>', 'viewers', readInteger(1, 10_000), 10)
      .option('--per-session <n>', 'keys that each viewer watches', readInteger(1, 5_000), 100)
      .option('--seconds <n>', 'time to measure', readInteger(1, 600), 10)
      .addOption(logOption())
  },

  problem({ start, keys, writers, perSession }) {
    if (start !== 'keycast') return 'it calls the internal listener: give --start'
    if (perSession > keys) return '--per-session must not be above --keys'
    return writers > keys ? '--writers must not be above --keys: each has keys of its own' : undefined
  },
  content: ({ log, source }) => ({
    ...(source === 'pushed' && { rooms: { log }, pushed: true }),
  }),
  clients: ({ viewers }) => viewers,

  async run(context, { source, keys: keyCount, writers, lines, bytes, viewers, perSession, seconds }) {
    const { origins, apiToken } = context.target.calls as NonNullable<typeof context.target.calls>
    const name = source === 'pushed' ? 'handed' : 'told'
    const keys = Array.from({ length: keyCount }, (_, key) => `${name}:${key}`)
    const settings = { origins, apiToken, keys, writers, lines, bytes, perSession }
    const pool = await context.startPool({ workload: 'handover', settings, clientsMax: viewers })
    const { counts, reasons, histograms } = pool.totals
    context.phase('connect')
    await openAll(context, pool, { clients: viewers })
    await context.until(() => counts.ready >= viewers, READY_MS)
    context.phase('measure')
    pool.tell({ begin: true })
    await context.wait(seconds * 1_000)
    context.phase('settle')
    pool.tell({ stop: true })
    await context.wait(SETTLE_MS)
    const outcomes = (await pool.finish()) as HandoverOutcome[]
    const measured = secondsOf(context, 'measure').slice(1)

    const perSecond = perSecondOf(measured, 'taken')
    const { latency } = histograms
    const ms = (percentile: number) => msAt(latency, percentile)
    const last = new Map(outcomes.flatMap(({ taken }) => taken))
    const seen = outcomes.flatMap(outcome => outcome.seen)
    const behind = seen.filter(([key, number]) => last.get(key) !== number).length
    const { calls, taken, failed, back, refusals, unexpected } = counts
    return {
      headline: `${writers} writers, ${lines} values in a call, ${keyCount.toLocaleString('en')} keys: ${Math.round(perSecond).toLocaleString('en')} values of ${bytes} bytes taken a second, 99th percentile of a call ${ms(99).toFixed(0)} ms; ${seen.length.toLocaleString('en')} views ended at the last value${behind > 0 ? `, but ${behind}` : ''}, ${back} went back.`,
      figures: {
        perSecond: { label: 'Values taken', value: perSecond, unit: '/s', better: 'higher' },
        seenPerSecond: { label: 'Values sent to viewers', value: perSecondOf(measured, 'values'), unit: '/s' },
        p50: { label: 'Median of a call', value: ms(50), unit: 'ms', better: 'lower' },
        p99: { label: '99th percentile of a call', value: ms(99), unit: 'ms', better: 'lower' },
        ...cpuFigures(measured, 'taken'),
      },
      counts,
      sums: [
        {
          text: `values handed over ${calls * lines} = taken ${taken} + failed ${failed}`,
          holds: calls * lines === taken + failed,
        },
        {
          text: `views that did not end at the last value ${behind}, that went back ${back}`,
          holds: behind + back === 0,
        },
        {
          text: `views ${seen.length} = ${viewers} viewers × ${perSession} keys`,
          holds: seen.length === viewers * perSession,
        },
        {
          text: `values failed ${failed}, errors ${refusals}, unexpected messages ${unexpected}`,
          holds: failed + refusals + unexpected === 0,
        },
      ],
      latency,
      latencyLabel: 'From a call with a batch of values to its answer',
      reasons,
      measured,
      notes: [
        'A writer calls again when it is answered, so a slow system is asked less: this measures throughput.',
        'Viewers are sent the latest value of a key when they can be written to: fewer than are taken.',
      ],
    }
  },
}
