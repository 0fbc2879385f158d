// Viewers that wait for changes over HTTP through a cache, as docs/deploy/cdn.md has it: how many of their requests reach
// the gateways, how late each change is, and whether a gateway that is behind or dies shows anybody an older version.

import type { Histogram } from 'hdr-histogram-js'
import { readDuration, readInteger } from '../command-line/options.ts'
import { nowUs, pause } from '../generator/clock.ts'
import { createHistogram } from '../generator/histogram.ts'
import type { Change, Listing, WaitOutcome } from '../generator/workloads/wait.ts'
import { sumIn } from '../system/exposition.ts'
import { cpuFigures, msAt, secondsOf, sumOf } from './figures.ts'
import type { Context, Scenario } from './scenario.ts'

const CONNECT_MS_MAX = 120_000
/** From a change to the last viewer that has it, where a gateway is behind or gone. */
const SPREAD_MS_MAX = 60_000
/** Every generator process knows of a change before it is made. */
const NOTICE_US = 100_000
/** All viewers wait again after an answer by then: the cache looks at its lock twice a second. */
const SETTLE_MS = 2_000
/** The revision of all keys at the start, which the second change goes back to. */
const FIRST = 1

export const edge: Scenario = {
  name: 'edge',
  about: 'Has 10,000 viewers wait for changes of 10 keys over HTTP through a cache: requests that reach the gateways.',
  rates: [
    { count: 'received', label: 'changes delivered' },
    { count: 'unchanged', label: 'answers without a change' },
  ],
  counts: [
    'connected',
    'requested',
    'received',
    'unchanged',
    'skipped',
    'wentBack',
    'refusals',
    'dropped',
    'changes',
    'missing',
  ],
  gateways: 2,
  references: [],

  addOptions(command) {
    command
      .option('--viewers <n>', 'viewers, each with one request under way', readInteger(1, 19_000), 10_000)
      .option('--keys <n>', 'keys; each viewer waits for one', readInteger(1, 1_000), 10)
      .option('--quiet <duration>', 'time in which nothing changes', readDuration, 600_000)
      .option('--rounds <n>', 'changes of each key, the second back to the former content', readInteger(2, 1_000), 6)
      .option('--every <duration>', 'time between two changes, each of another key', readDuration, 1_000)
      .option('--behind <duration>', 'how late a gateway hears of changes, for one round', readDuration, 5_000)
      .option('--bytes <size>', 'size of a value', readInteger(100, 100_000), 1_000)
  },

  problem({ start, gateways = 2, keys, viewers }) {
    if (start !== 'keycast') return 'edge puts a cache before the gateways, and kills one: it needs --start'
    if (gateways < 2) return 'edge needs a gateway that is left: --gateways must be 2 at least'
    return keys > viewers ? '--keys must not be over --viewers' : undefined
  },
  content: ({ bytes }) => ({ documentBytes: bytes, told: true, edge: true }),
  clients: ({ viewers }) => viewers,

  async run(context, options) {
    const { viewers, keys: keyCount, quiet, rounds, every, behind } = options
    const keys = Array.from({ length: keyCount }, (_, at) => `told:${at + 1}`)
    const starts = await begin(context, keys, options)
    const { hostname: host, port } = new URL(context.target.edgeUrl as string)
    const settings = { host, port: Number(port), viewers, starts }
    const pool = await context.startPool({ workload: 'wait', settings, clientsMax: viewers, urls: [] })
    const { counts, reasons, histograms } = pool.totals
    const tell = (message: Change | Listing) => pool.tell(message)
    let made = 0

    /** Each key in its turn; and until all have it, but those who were sent a newer one at once. */
    async function changeAll(revision: number) {
      for (const key of keys) {
        const change = { key, revision, atUs: nowUs() + NOTICE_US }
        tell(change)
        await pause(Math.max(0, change.atUs - nowUs()) / 1_000)
        await set(context, change, options)
        made++
        await context.wait(every)
      }
      const due = (made / keyCount) * viewers
      await context.until(() => counts.received + counts.skipped >= due, SPREAD_MS_MAX)
    }

    /** @returns the latencies of these changes alone */
    async function measure(run: () => Promise<unknown>): Promise<Histogram> {
      histograms.latency.reset()
      await run()
      const latency = createHistogram()
      latency.add(histograms.latency)
      return latency
    }

    context.phase('connect')
    await context.until(() => counts.connected >= viewers, CONNECT_MS_MAX)
    await context.wait(SETTLE_MS)

    context.phase('quiet')
    tell({ listed: true })
    const beforeQuiet = await requestsAnswered(context)
    await context.wait(quiet)
    const quietRequests = (await requestsAnswered(context)) - beforeQuiet
    tell({ listed: false })

    context.phase('changes')
    const beforeChanges = await requestsAnswered(context, '200')
    const latency = await measure(async () => {
      for (let round = 0; round < rounds; round++) await changeAll(round === 1 ? FIRST : round + FIRST + 1)
    })
    const perChange = ((await requestsAnswered(context, '200')) - beforeChanges) / made
    const measured = secondsOf(context, 'changes')

    context.phase('behind')
    await context.target.delayGateway?.(behind)
    const late = await measure(async () => {
      await changeAll(rounds + FIRST + 1)
      await changeAll(rounds + FIRST + 2)
    })
    await context.target.delayGateway?.(0)
    await context.wait(SETTLE_MS)

    context.phase('killed')
    context.target.killGateway?.()
    const alone = await measure(() => changeAll(rounds + FIRST + 3))
    context.phase('end')
    const outcomes = (await pool.finish()) as WaitOutcome[]

    const edges = new Set(outcomes.flatMap(outcome => outcome.edges)).size
    const perEdge = edges === 0 ? undefined : quietRequests / edges
    const missing = sumOf(outcomes, outcome => outcome.missing)
    const { received, skipped, wentBack, refusals, dropped } = counts
    const due = (made / keyCount) * viewers
    const latest = (of: Histogram) => (of.totalCount === 0 ? undefined : of.maxValue / 1_000)
    return {
      headline: `${viewers.toLocaleString('en')} viewers of ${keyCount} keys cost the gateways ${perChange.toFixed(2)} requests a change${perEdge === undefined ? '' : `, and ${perEdge.toFixed(2)} per key and edge where nothing changes`}; 99 % have a change within ${msAt(latency, 99).toFixed(0)} ms, and ${wentBack === 0 ? 'nobody goes' : `${wentBack} went`} back.`,
      figures: {
        perChange: {
          label: 'Requests at the gateways per change',
          value: perChange,
          unit: '',
          better: 'lower',
          note: 'to be 2 at most',
        },
        perEdge: {
          label: 'Requests at the gateways per key and edge without a change',
          value: perEdge,
          unit: '',
          better: 'lower',
          note: `to be 1 at most; ${edges} edges`,
        },
        p99: {
          label: '99th percentile',
          value: msAt(latency, 99),
          unit: 'ms',
          better: 'lower',
          note: 'to be 600 ms at most',
        },
        p50: { label: 'Median', value: msAt(latency, 50), unit: 'ms', better: 'lower' },
        behindMax: { label: 'Latest, a gateway behind', value: latest(late), unit: 'ms', better: 'lower' },
        killedMax: { label: 'Latest, a gateway killed', value: latest(alone), unit: 'ms', better: 'lower' },
        ...cpuFigures(measured, 'received'),
      },
      counts: { ...counts, changes: made, missing },
      sums: [
        {
          text: `changes × viewers ${due} = received ${received} + skipped for newer ones ${skipped} + missing ${missing}`,
          holds: due === received + skipped + missing,
        },
        { text: `missing ${missing}, went back ${wentBack}`, holds: missing + wentBack === 0 },
        { text: `requests refused ${refusals}, connections lost ${dropped}`, holds: refusals + dropped === 0 },
      ],
      latency,
      latencyLabel: 'From the change at the backend to its last byte at the viewer',
      reasons,
      measured,
      notes: [
        'nginx looks at the lock of its cache every 500 ms: a viewer has a change a quarter of a second later on average.',
      ],
    }
  },
}

/** All keys have their first content. @returns where viewers begin */
async function begin(context: Context, keys: string[], options: { bytes: number }) {
  const { origin } = new URL(context.target.urls[0].replace(/^ws/, 'http'))
  const starts: Record<string, { version: string; cursor: string; revision: number }> = {}
  for (const key of keys) {
    await put(context, { key, revision: FIRST }, options)
    const { status, headers } = await fetch(`${origin}/v1/values/${key}`)
    const [version, cursor] = [headers.get('etag'), headers.get('keycast-cursor')]
    if (!version || !cursor) throw new Error(`GET /v1/values/${key} answered ${status} without a cursor`)
    starts[key] = { version: version.replace(/^W\/|"/g, ''), cursor, revision: FIRST }
  }
  return starts
}

async function set(context: Context, change: { key: string; revision: number }, options: { bytes: number }) {
  await put(context, change, options)
  await context.target.tellChanged?.([change.key])
}

async function put(
  { target }: Context,
  { key, revision }: { key: string; revision: number },
  { bytes }: { bytes: number },
) {
  const start = `{"revision":${revision},"text":"`
  const body = `${start}${'x'.repeat(bytes - start.length - 2)}"}`
  const path = key.replace('told:', '/conversations/')
  const { ok, status } = await fetch(target.providerUrl + path, { method: 'PUT', body })
  if (!ok) throw new Error(`PUT ${path} was answered with ${status}`)
}

/** By all gateways so far. @param status only those answered with it */
async function requestsAnswered({ target }: Context, status?: string) {
  const gateways = target.watched.filter(({ role }) => role === 'gateway')
  const texts = await Promise.all(gateways.map(async ({ metricsUrl }) => (await fetch(String(metricsUrl))).text()))
  const labels = status && `\\{status="${status}"\\}`
  return sumOf(texts, text => sumIn(text, 'http_waits_total', labels) ?? 0)
}
