// Measures the cost of keys that nobody changes. Every gateway watches all of them, they are refreshed, and a fetcher
// node is killed.
import { readDuration, readInteger, readSize } from '../command-line/options.ts'
import { clientsFor } from '../generator/workloads/watch.ts'
import { sumIn } from '../system/exposition.ts'
import { createProvider, requestsOf } from '../system/provider.ts'
import { openAll } from './connect-all.ts'
import type { Context, Scenario } from './scenario.ts'

/** Between two lines for the person who waits. */
const SAY_MS = 5_000
const LOOK_MS = 1_000
/** Of a value that names its key. */
const BYTES_MIN = 100
const BYTES = 200
/** A gateway's loop that is held up for longer is late for everybody. 20 ms lie between two buckets of its histogram. */
const LATE_SECONDS = '0.025'

const settingsOf = ({
  keys,
  perSession,
  gateways,
  key,
}: {
  keys: number
  perSession: number
  gateways: number
  key: string
}) => ({ keys, perSession, gateways, key })

export const keys: Scenario = {
  name: 'keys',
  about:
    'Watches very many keys at every gateway, and kills a fetcher node: memory and CPU time a key, time to recover.',
  rates: [
    { count: 'first', label: 'first values' },
    { count: 'values', label: 'values' },
  ],
  counts: ['opened', 'refused', 'dropped', 'closed', 'requested', 'first', 'values', 'stale', 'refusals', 'unexpected'],
  needsProvider: true,

  addOptions(command) {
    command
      .option('--keys <n>', 'keys, each watched by every gateway', readInteger(10, 5_000_000), 50_000)
      .option('--per-session <n>', 'keys of one client', readInteger(1, 100_000), 10_000)
      .option('--bytes <size>', `size of a value, ${BYTES_MIN} at least`, readSize, BYTES)
      .option('--refresh <duration>', 'how often each key is asked for', readDuration, 60_000)
      .option('--nodes <n>', 'fetcher nodes', readInteger(1, 8), 2)
      .option('--hold <duration>', 'how long to measure refreshes', readDuration, 60_000)
      .option('--recover <duration>', 'how long to wait for keys after a node was killed', readDuration, 300_000)
      .option('--key <name>', 'the keys are <name> and a number', 'text:')
  },

  content: ({ keys, bytes, refresh, nodes }) => ({
    still: true,
    documentBytes: bytes,
    refreshMs: refresh,
    fetchers: nodes,
    // The limits are there for servers of less memory and for clients that are not ours.
    settings: {
      FETCHER_CACHE_BYTES_MAX: String(Math.max(2 ** 20, keys * (4_096 + 2 * bytes))),
      // A value is held as it came and as it is sent.
      GATEWAY_CACHE_BYTES_MAX: String(Math.max(2 ** 20, keys * (4_096 + 4 * bytes))),
      GATEWAY_SUBSCRIPTIONS_MAX: String(keys * 2),
      GATEWAY_KEYS_PER_SESSION_MAX: '100000',
      GATEWAY_UNSENT_TOTAL_BYTES_MAX: String(2 ** 30),
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --max-old-space-size=8192`.trim(),
    },
  }),
  gateways: 4,
  clients: ({ keys, perSession, gateways }) =>
    clientsFor(settingsOf({ keys, perSession, gateways: gateways ?? 4, key: '' })),
  problem({ start, tls, bytes }) {
    if (start !== 'keycast' || tls) return 'keys kills a fetcher node: it needs --start, without --tls'
    return bytes < BYTES_MIN ? `--bytes must be ${BYTES_MIN} at least` : undefined
  },

  async run(context, options) {
    const { target, watcher } = context
    const gateways = target.urls.length
    const settings = settingsOf({ ...options, gateways })
    const clients = clientsFor(settings)
    const provider = createProvider(target.providerUrl as string)
    const fetchers = target.fetchers as NonNullable<typeof target.fetchers>
    const gatewayUrls = target.watched.flatMap(({ role, metricsUrl }) =>
      role === 'gateway' && metricsUrl ? [metricsUrl] : [],
    )
    const bytesBefore = await sumOfMetric(
      fetchers.map(({ metricsUrl }) => metricsUrl),
      'process_resident_memory_bytes',
    )

    const pool = await context.startPool({ workload: 'watch', settings, clientsMax: clients })
    const { counts } = pool.totals
    context.phase('fill')
    const filledFromMs = performance.now()
    await openAll(context, pool, { clients, everyUs: 10_000 })
    const wanted = options.keys * gateways
    const isFilled = await untilSaying(
      context,
      () => counts.first >= wanted,
      options.timeMax,
      () => `${counts.first.toLocaleString('en')} of ${wanted.toLocaleString('en')} first values`,
    )
    const fillSeconds = (performance.now() - filledFromMs) / 1_000
    const bytesFilled = await sumOfMetric(
      fetchers.map(({ metricsUrl }) => metricsUrl),
      'process_resident_memory_bytes',
    )

    context.phase('refresh')
    const lagBefore = await lagsOf(gatewayUrls)
    const cpuBefore = await watcher.cpuByRole()
    const requestsBefore = requestsOf(await provider.stats())
    const heldFromMs = performance.now()
    if (isFilled) await context.wait(options.hold)
    const heldSeconds = (performance.now() - heldFromMs) / 1_000
    const refreshes = requestsOf(await provider.stats()) - requestsBefore
    const cpuAfter = await watcher.cpuByRole()
    const lagHeld = lessThan(await lagsOf(gatewayUrls), lagBefore)
    const expected = (options.keys / (options.refresh / 1_000)) * heldSeconds
    const fetcherMs = (cpuAfter.fetcher ?? 0) - (cpuBefore.fetcher ?? 0)

    let recoverSeconds: number | undefined
    const lagKilled = await lagsOf(gatewayUrls)
    if (isFilled && fetchers.length > 1 && context.ended() === undefined) {
      context.phase('killed')
      const [killed, ...rest] = fetchers
      const urls = rest.map(({ metricsUrl }) => metricsUrl)
      killed.kill()
      const killedAtMs = performance.now()
      let served = 0
      const look = async () => {
        const watched = await sumOfMetric(urls, 'watched_keys')
        const left = (await sumOfMetric(urls, 'fetches_waiting')) + (await sumOfMetric(urls, 'fetches_in_flight'))
        served = Math.max(0, watched - left)
        return watched >= options.keys
      }
      const giveUpMs = killedAtMs + options.recover
      for (let isOver = false; !isOver && performance.now() < giveUpMs; ) {
        if (!(await context.wait(LOOK_MS))) break
        isOver = (await look()) && served >= options.keys * SERVED_SHARE
        if (isOver) recoverSeconds = (performance.now() - killedAtMs) / 1_000
        else context.say(`${served.toLocaleString('en')} keys served by the nodes that are left`)
      }
    }
    const lagAfterKill = lessThan(await lagsOf(gatewayUrls), lagKilled)
    context.phase('end')
    await pool.finish()

    const kilobytesPerKey = (bytesFilled - bytesBefore) / 1_000 / options.keys
    const { requested, first } = counts
    return {
      headline: `${options.keys.toLocaleString('en')} keys at ${gateways} gateways, refreshed every ${options.refresh / 1_000} s: ${kilobytesPerKey.toFixed(2)} KB a key in the primaries, ${(fetcherMs / heldSeconds / 1_000 / fetchers.length).toFixed(2)} of a core a node, ${recoverSeconds === undefined ? 'not all served' : `all served ${recoverSeconds.toFixed(0)} s`} after a node was killed.`,
      figures: {
        kilobytesPerKey: {
          label: 'Memory per key, primaries together',
          value: kilobytesPerKey,
          unit: 'KB',
          better: 'lower',
        },
        coresPerNode: {
          label: 'CPU per node, workers included',
          value: fetcherMs / heldSeconds / 1_000 / fetchers.length,
          unit: 'cores',
          better: 'lower',
        },
        fetcherUsPerRefresh: {
          label: 'Fetcher CPU per refresh',
          value: refreshes > 0 ? (fetcherMs * 1_000) / refreshes : undefined,
          unit: 'µs',
          better: 'lower',
        },
        gatewayCores: {
          label: 'CPU of all gateways',
          value: ((cpuAfter.gateway ?? 0) - (cpuBefore.gateway ?? 0)) / heldSeconds / 1_000,
          unit: 'cores',
          better: 'lower',
        },
        refreshesKept: {
          label: 'Refreshes made of those due',
          value: expected > 0 ? refreshes / expected : undefined,
          unit: 'share',
          better: 'higher',
        },
        fillSeconds: {
          label: 'Until every gateway had every key',
          value: isFilled ? fillSeconds : undefined,
          unit: 's',
          better: 'lower',
        },
        recoverSeconds: {
          label: 'Until all were served after a node was killed',
          value: recoverSeconds,
          unit: 's',
          better: 'lower',
        },
        lateShare: {
          label: 'Gateways: timers over 25 ms late, while refreshing',
          value: shareLate(lagHeld),
          unit: 'share',
          better: 'lower',
        },
        lateShareKilled: {
          label: 'Gateways: timers over 25 ms late, after the kill',
          value: shareLate(lagAfterKill),
          unit: 'share',
          better: 'lower',
        },
      },
      counts,
      sums: [
        { text: `first values ${first} = keys asked for ${requested}`, holds: first === requested },
        {
          text: `keys asked for ${requested} = keys ${options.keys} × gateways ${gateways}`,
          holds: requested === wanted,
        },
      ],
      reasons: pool.totals.reasons,
      tables: [
        {
          title: 'CPU while refreshing, all processes of a kind together',
          columns: ['processes', 'cores', 'µs a refresh'],
          rows: Object.keys(cpuAfter).map(role => {
            const ms = (cpuAfter[role] ?? 0) - (cpuBefore[role] ?? 0)
            return [role, ms / 1_000 / heldSeconds, refreshes > 0 ? (ms * 1_000) / refreshes : 0]
          }),
        },
      ],
      notes: [
        'Memory per key is what resident memory grew by while the keys came: with its value, and garbage included.',
        'A node that is killed says nothing: three seconds of silence are part of the time until all are served.',
      ],
    }
  },
}

/** A few keys are being refreshed at any moment. */
const SERVED_SHARE = 0.995

async function untilSaying(context: Context, condition: () => boolean, msMax: number, text: () => string) {
  for (const giveUpMs = performance.now() + msMax; performance.now() < giveUpMs; ) {
    if (await context.until(condition, SAY_MS)) return true
    if (context.ended() !== undefined) return false
    context.say(text())
  }
  return condition()
}

/** Timers, and those that were not late. */
interface Lags {
  all: number
  inTime: number
}

async function lagsOf(urls: string[]): Promise<Lags> {
  return {
    all: await sumOfMetric(urls, 'event_loop_lag_seconds_count'),
    inTime: await sumOfMetric(urls, 'event_loop_lag_seconds_bucket', `\\{le="${LATE_SECONDS}"\\}`),
  }
}

export const lessThan = (after: Lags, before: Lags) => ({
  all: after.all - before.all,
  inTime: after.inTime - before.inTime,
})

export const shareLate = ({ all, inTime }: Lags): number | undefined => (all > 0 ? (all - inTime) / all : undefined)

async function sumOfMetric(urls: string[], name: string, labels?: string) {
  const texts = await Promise.all(urls.map(async url => (await fetch(url)).text()))
  return texts.reduce((sum, text) => sum + (sumIn(text, name, labels) ?? 0), 0)
}
