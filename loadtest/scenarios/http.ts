// A small value over HTTP, asked for as fast as the answers come: requests a second, for code that still polls.
import { readInteger } from '../command-line/options.ts'
import type { HttpOutcome } from '../generator/workloads/http.ts'
import { cpuFigures, msAt, perSecondOf, secondsOf, sumOf } from './figures.ts'
import type { Scenario } from './scenario.ts'

const CONNECT_MS_MAX = 120_000
/** From a request a second to as many as are answered. */
const SETTLE_MS = 1_000
/** A gateway lets so many HTTP requests wait for a fetch. */
const CONNECTIONS_PER_GATEWAY = 4_000

export const http: Scenario = {
  name: 'http',
  about:
    'Asks for a small value over HTTP with 1,000 connections, each as soon as it is answered: requests per second.',
  rates: [{ count: 'answered', label: 'answers' }],
  counts: ['connected', 'requested', 'answered', 'refusals', 'lost'],
  references: ['http'],

  addOptions(command) {
    command
      .option('--connections <n>', 'HTTP connections, each with one request under way', readInteger(1, 18_000), 1_000)
      .option('--seconds <n>', 'time to measure', readInteger(1, 600), 30)
      .option('--bytes <size>', 'size of the value (with --start)', readInteger(1_000, 100_000), 1_000)
      .option('--path <path>', 'path of the value', '/v1/values/conversation:1')
  },

  problem: ({ start, connections, gateways = 1 }) =>
    start === 'keycast' && connections > gateways * CONNECTIONS_PER_GATEWAY
      ? `a gateway lets ${CONNECTIONS_PER_GATEWAY.toLocaleString('en')} HTTP requests wait for a fetch: give more --gateways`
      : undefined,
  // A gateway keeps open files free for its sessions. Here none come, and their files serve HTTP.
  content: ({ bytes }) => ({ documentBytes: bytes, settings: { GATEWAY_SESSIONS_MAX: '1000' } }),
  clients: ({ connections }) => connections,

  async run(context, { connections, seconds, path }) {
    const origins = context.target.urls.map(url => new URL(url.replace(/^ws/, 'http')).origin)
    const pool = await context.startPool({
      workload: 'http',
      settings: { origins, path, connections },
      clientsMax: connections,
      urls: [],
    })
    const { counts, reasons, histograms } = pool.totals
    context.phase('connect')
    await context.until(() => counts.connected >= connections, CONNECT_MS_MAX)
    const connected = counts.connected
    pool.tell({})
    await context.wait(SETTLE_MS)

    context.phase('measure')
    histograms.latency.reset()
    await context.wait(seconds * 1_000)
    context.phase('end')
    const outcomes = (await pool.finish()) as HttpOutcome[]
    const measured = secondsOf(context, 'measure')

    const { latency } = histograms
    const perSecond = perSecondOf(measured, 'answered')
    const { requested, answered, refusals, lost } = counts
    const underWay = sumOf(outcomes, outcome => outcome.underWay)
    return {
      headline: `${connected.toLocaleString('en')} connections: ${Math.round(perSecond).toLocaleString('en')} requests a second, mean ${(latency.mean / 1_000).toFixed(1)} ms.`,
      figures: {
        perSecond: { label: 'Requests answered', value: perSecond, unit: '/s', better: 'higher' },
        mean: { label: 'Mean latency', value: latency.mean / 1_000, unit: 'ms', better: 'lower' },
        p99: { label: '99th percentile', value: msAt(latency, 99), unit: 'ms', better: 'lower' },
        ...cpuFigures(measured, 'answered'),
      },
      counts,
      sums: [
        {
          text: `connections ${connections} = those that were answered ${connected}`,
          holds: connections === connected,
        },
        {
          text: `requests ${requested} = answered ${answered} + refused ${refusals} + lost ${lost} + under way at the end ${underWay}`,
          holds: requested === answered + refusals + lost + underWay,
        },
        { text: `requests refused ${refusals}, lost ${lost}`, holds: refusals + lost === 0 },
      ],
      latency,
      latencyLabel: 'From sending a request to its answer',
      reasons,
      measured,
      notes: [
        'A connection asks again when it is answered, so a slow server is asked less: the mean latency is the number of connections divided by the answers a second.',
      ],
    }
  },
}
