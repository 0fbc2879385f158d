// Measures the ways in which a viewer can follow a document: polling, and subscribing.
import { JSON_SUBPROTOCOL } from '@keycast/protocol'
import type { Histogram } from 'hdr-histogram-js'
import { WebSocket } from 'ws'
import type { Pool } from '../../generator/pool.ts'
import { createProvider, requestsOf } from '../../system/provider.ts'
import { openAll } from '../connect-all.ts'
import { secondsOf, sumOf } from '../figures.ts'
import type { Context, Options } from '../scenario.ts'

/** An answer later than this after the last poll counts as lost. */
const GIVE_UP_MS = 5_000

/** The cost of one way. */
export interface Way {
  name: string
  /** Received a second by each viewer. */
  bytes: number
  /** Received by a viewer for each change it saw. */
  bytesPerChange: number | undefined
  /** Of the backend, a second. */
  requests: number
  /** Answers of the backend, a second: the rest were 304. */
  full: number
  staleness: Histogram
  /** A second. */
  cpuMs: { backend: number; keycast: number; viewers: number }
  counts: Record<string, number>
}

export async function poll(
  context: Context,
  { clients, seconds, change }: Options,
  { name, paths, conditional }: { name: string; paths: string[]; conditional: boolean },
) {
  const origin = context.target.providerUrl as string
  return measure(context, name, {
    clients,
    // As many as there were polls of each: that the groups begin one after the other makes nobody poll less often.
    seconds,
    start: () =>
      context.startPool({
        workload: 'poll',
        settings: { origin, paths, viewers: clients, polls: seconds, changeMs: change, conditional },
        clientsMax: clients,
        urls: [],
      }),
    begin: async () => {},
    wait: pool =>
      context.until(
        () => pool.totals.counts.answered + pool.totals.counts.refusals >= clients * seconds,
        seconds * 1_000 + GIVE_UP_MS,
      ),
  })
}

export async function subscribe(
  context: Context,
  { clients, seconds, change }: Options,
  {
    name,
    keys,
    subprotocol = JSON_SUBPROTOCOL,
    tellChanged,
  }: { name: string; keys: string[]; subprotocol?: string; tellChanged?: (keys: string[]) => Promise<void> },
) {
  let telling = true
  const tell = async () => {
    while (telling && tellChanged) {
      // A revision begins with each whole period of the wall clock.
      await new Promise(resolve => setTimeout(resolve, change - (Date.now() % change) + 1))
      if (telling) await tellChanged(keys)
    }
  }
  return measure(context, name, {
    clients,
    start: () =>
      context.startPool({ workload: 'view', settings: { keys, changeMs: change }, clientsMax: clients, subprotocol }),
    async begin(pool) {
      await openAll(context, pool, { clients, count: 'answered' })
      tell().catch(error => context.say(`Keycast could not be told of changes: ${error.message}`))
    },
    wait: () => context.wait(seconds * 1_000),
    end() {
      telling = false
    },
  })
}

async function measure(
  context: Context,
  name: string,
  {
    clients,
    seconds: nominal,
    start,
    begin,
    wait,
    end,
  }: {
    clients: number
    seconds?: number
    start: () => Promise<Pool>
    begin: (pool: Pool) => Promise<void>
    wait: (pool: Pool) => Promise<boolean>
    end?: () => void
  },
): Promise<Way> {
  const provider = createProvider(context.target.providerUrl as string)
  context.phase('begin')
  const pool = await start()
  await begin(pool)
  context.phase(name)
  await provider.reset()
  const { histograms } = pool.totals
  histograms.latency.reset() // the first values say nothing of changes
  const cpuBefore = await context.watcher.cpuByRole()
  const before = { ...pool.totals.counts }
  const startedMs = performance.now()
  await wait(pool)
  const seconds = nominal ?? (performance.now() - startedMs) / 1_000
  const cpuAfter = await context.watcher.cpuByRole()
  const stats = await provider.stats()
  const during = (count: string) => (pool.totals.counts[count] ?? 0) - (before[count] ?? 0)
  const [received, changesSeen] = [during('bytesIn'), during('news')]
  context.phase('end')
  end?.()
  const viewersMs = sumOf(secondsOf(context, name), second => second.generator.cpuMs)
  await pool.finish()

  const cpuOf = (role: string) => ((cpuAfter[role] ?? 0) - (cpuBefore[role] ?? 0)) / seconds
  return {
    name,
    bytes: received / clients / seconds,
    bytesPerChange: changesSeen === 0 ? undefined : received / changesSeen,
    requests: requestsOf(stats) / seconds,
    full: sumOf(Object.values(stats.requests), ({ full }) => full) / seconds,
    staleness: pool.totals.histograms.latency,
    cpuMs: {
      backend: cpuOf('data-provider'),
      keycast: cpuOf('gateway') + cpuOf('fetcher') + cpuOf('proxy'),
      viewers: viewersMs / seconds,
    },
    counts: pool.totals.counts,
  }
}

/** Whether a gateway takes a subprotocol: it answers an offer of nothing it knows with 400. */
export function accepts(url: string, subprotocol: string) {
  return new Promise(resolve => {
    const socket = new WebSocket(url, [subprotocol], { rejectUnauthorized: false })
    socket.on('open', () => {
      socket.terminate()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
