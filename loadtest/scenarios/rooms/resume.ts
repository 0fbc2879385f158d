// Many clients come back at once, each some messages behind: how soon all of them have everything.
import { readInteger } from '../../command-line/options.ts'
import type { Positions } from '../../generator/workloads/publish.ts'
import { openAll } from '../connect-all.ts'
import { cpuFigures, msAt, secondsOf } from '../figures.ts'
import type { Context, Scenario } from '../scenario.ts'
import { logOption } from './log-option.ts'

const FILL_MS_MAX = 60_000
const RESUME_MS_MAX = 60_000
/** Publishes under way while the rooms are filled. */
const FILL_WINDOW = 16

export const resume: Scenario = {
  name: 'resume',
  about: 'Has 5,000 clients resume at once, 100 messages behind each: time until all have everything.',
  rates: [
    { count: 'messages', label: 'messages delivered' },
    { count: 'complete', label: 'clients that have everything' },
  ],
  counts: [
    'opened',
    'refused',
    'dropped',
    'closed',
    'requested',
    'recovered',
    'complete',
    'messages',
    'disorder',
    'refusals',
    'lost',
    'unexpected',
  ],
  references: [],

  addOptions(command) {
    command
      .option('--clients <n>', 'clients', readInteger(1, 100_000), 5_000)
      .option('--rooms <n>', 'rooms; each client is in one', readInteger(1, 100_000), 100)
      .option('--behind <n>', 'messages that each client has to be sent', readInteger(1, 10_000), 100)
      .option('--ramp <n>', 'clients to connect per second', readInteger(1, 10_000), 500)
      .addOption(logOption())
  },

  problem: ({ rooms, clients }) => (rooms > clients ? '--rooms must not be over --clients' : undefined),
  content: ({ log }) => ({ rooms: { log } }),

  async run(context, { clients, rooms: roomCount, behind, ramp }) {
    const rooms = Array.from({ length: roomCount }, (_, number) => `room:${number + 1}`)
    context.phase('fill')
    const positions = await fill(context, rooms, behind)

    const pool = await context.startPool({ workload: 'resume', settings: { rooms }, clientsMax: clients })
    context.phase('connect')
    await openAll(context, pool, { clients, count: 'welcomed', everyUs: 1e6 / ramp })
    const { counts, reasons, histograms } = pool.totals
    const connected = counts.welcomed

    context.phase('measure')
    pool.tell({ positions, behind })
    const settled = () => counts.complete + counts.refusals + counts.lost >= connected
    await context.until(settled, RESUME_MS_MAX)
    context.phase('end')
    await pool.finish()
    const measured = secondsOf(context, 'measure')

    const { latency } = histograms
    const { requested, recovered, complete, messages, disorder, unexpected } = counts
    const ms = (percentile: number) => msAt(latency, percentile)
    const came = latency.totalCount > 0
    return {
      headline: `${complete.toLocaleString('en')} of ${requested.toLocaleString('en')} clients that resumed ${behind} messages each had all of them after ${came ? (ms(100) / 1_000).toFixed(2) : '—'} s.`,
      figures: {
        last: { label: 'All have everything', value: came ? ms(100) : undefined, unit: 'ms', better: 'lower' },
        p50: { label: 'Median client', value: came ? ms(50) : undefined, unit: 'ms', better: 'lower' },
        ...cpuFigures(measured, 'messages'),
      },
      counts,
      sums: [
        {
          text: `clients that resumed ${requested} = recovered ${recovered} = complete ${complete}`,
          holds: requested === recovered && requested === complete,
        },
        {
          text: `messages ${messages} = clients ${complete} × ${behind}; out of order ${disorder}, unexpected ${unexpected}`,
          holds: messages === complete * behind && disorder + unexpected === 0,
        },
      ],
      latency,
      latencyLabel: 'From a client’s subscribe to the last message it had missed',
      reasons,
      measured,
    }
  },
}

/**
 * Publishes messages into each room.
 *
 * @param each messages of each room
 * @returns the rooms' heads
 */
async function fill(context: Context, rooms: string[], each: number): Promise<Positions> {
  const settings = { rooms, window: FILL_WINDOW, each }
  const load = { workload: 'publish', settings, clientsMax: rooms.length, processes: 1, aside: true }
  const pool = await context.startPool(load)
  await openAll(context, pool, { clients: rooms.length })
  pool.tell({ begin: true })
  const { counts } = pool.totals
  await context.until(() => counts.published >= rooms.length * each, FILL_MS_MAX)
  const [positions] = (await pool.finish()) as Positions[]
  const missing = rooms.filter(room => positions[room] === undefined || positions[room].seq < each)
  if (missing.length > 0) throw new Error(`${missing.length} rooms could not be filled: ${missing.slice(0, 3)}`)
  return positions
}
