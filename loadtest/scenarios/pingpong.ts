// The smallest exchange there is: how many of them a second?
import { Option } from 'commander'
import { readDuration, readInteger } from '../command-line/options.ts'
import { connectAndMeasure, rampAndMeasure } from './connect-all.ts'
import { cpuFigures, megabytesOf, msAt, perSecondOf, usageFigures } from './figures.ts'
import type { Scenario } from './scenario.ts'

export const pingpong: Scenario = {
  name: 'pingpong',
  about: 'Exchanges pings and pongs with 100 clients, with a window or at a rate: messages per second.',
  rates: [
    { count: 'answered', label: 'pongs' },
    { count: 'requested', label: 'pings' },
  ],
  counts: ['opened', 'refused', 'dropped', 'closed', 'requested', 'answered', 'refusals', 'lost', 'unexpected'],
  references: ['bare', 'naive', 'cluster', 'socket.io', 'socketcluster'],

  addOptions(command) {
    command
      .option('--clients <n>', 'clients', readInteger(1, 100_000), 100)
      .option(
        '--ramp <n>',
        'clients to connect per second, each begins at once; else all connect, and then begin',
        readInteger(1, 10_000),
      )
      .option(
        '--window <n>',
        'pings each client has under way; the next goes when one returns',
        readInteger(1, 10_000),
        16,
      )
      .addOption(
        new Option('--rate <n>', 'pings each client sends a second instead, whether or not they return')
          .argParser(readInteger(1, 10_000))
          .conflicts('window'),
      )
      .addOption(
        new Option('--every <duration>', 'time between two pings of a client instead, as in 6s')
          .argParser(readDuration)
          .conflicts(['window', 'rate']),
      )
      .option('--seconds <n>', 'time to measure', readInteger(1, 600), 10)
  },

  problem({ every, rate }) {
    if (every !== undefined && every < 1) return '--every must be 1ms at least'
    return rate > 1_000 && rate % 10 !== 0 ? '--rate above 1,000 must be a multiple of 10' : undefined
  },

  async run(context, { clients, ramp, window, rate, every, seconds }) {
    const due = dueOf({ every, rate })
    const pool = await context.startPool({ workload: 'ping', settings: due ?? { window }, clientsMax: clients })
    let timedBefore = 0
    /** Latencies are of the time with all clients. */
    const onAll = () => {
      timedBefore = pool.totals.histograms.latency.totalCount
      pool.totals.histograms.latency.reset()
    }
    const measured = await (ramp === undefined
      ? connectAndMeasure(context, pool, { clients, seconds })
      : rampAndMeasure(context, pool, { clients, ramp, seconds, onAll }))
    const { counts, reasons, histograms } = pool.totals
    const { latency } = histograms
    const timed = timedBefore + latency.totalCount
    const perSecond = perSecondOf(measured, 'answered')
    const { requested, answered, refusals, lost } = counts
    const how = due === undefined ? `${window} under way each` : `${due.pings} every ${due.intervalMs} ms each`
    return {
      headline: `${clients} clients, ${how}: ${Math.round(perSecond).toLocaleString('en')} pings and pongs a second.`,
      figures: {
        messagesPerSecond: { label: 'Pings answered', value: perSecond, unit: '/s', better: 'higher' },
        p50: {
          label: 'Median round trip',
          value: msAt(latency, 50),
          unit: 'ms',
          better: 'lower',
        },
        p99: { label: '99th percentile', value: msAt(latency, 99), unit: 'ms', better: 'lower' },
        gatewayMegabytes: {
          label: 'Memory of the gateways',
          value: megabytesOf(measured, 'gateway'),
          unit: 'MB',
          better: 'lower',
        },
        ...cpuFigures(measured, 'answered'),
        ...usageFigures(measured),
      },
      counts,
      sums: [
        {
          text: `pings ${requested} = pongs ${answered} + refused ${refusals} + lost ${lost}`,
          holds: requested === answered + refusals + lost,
        },
        { text: `${timed} round trips timed = ${answered} pongs`, holds: timed === answered },
      ],
      latency,
      latencyLabel: due === undefined ? 'From sending a ping to its pong' : 'From the time a ping was due to its pong',
      reasons,
      measured,
      notes:
        due === undefined
          ? [
              'With a window a slow server is asked less: this measures throughput. Take --rate or --every for latencies.',
            ]
          : [],
    }
  },
}

/**
 * When pings of a client are due, if not as soon as others return. Of more than a thousand a second several are due
 * together, as a timer is no finer than a millisecond.
 *
 * @param options `every`: milliseconds; `rate`: a second, above 1,000 a multiple of 10
 */
export function dueOf({
  every,
  rate,
}: {
  every?: number
  rate?: number
}): { intervalMs: number; pings: number } | undefined {
  if (every !== undefined) return { intervalMs: Math.round(every), pings: 1 }
  if (rate === undefined) return undefined
  if (rate <= 1_000) return { intervalMs: Math.round(1_000 / rate), pings: 1 }
  let intervalMs = 1
  while ((rate * intervalMs) % 1_000 !== 0) intervalMs += 1
  return { intervalMs, pings: (rate * intervalMs) / 1_000 }
}
