// A chat: how late every message is at every member of its room, and whether each came once and in order.
import { readDuration, readInteger } from '../../command-line/options.ts'
import type { ChatOutcome } from '../../generator/workloads/chat.ts'
import { openAll } from '../connect-all.ts'
import { cpuFigures, msAt, secondsOf, usageFigures } from '../figures.ts'
import type { Scenario } from '../scenario.ts'
import { logOption } from './log-option.ts'

export const chat: Scenario = {
  name: 'chat',
  about: 'Has 100 users publish 500 messages each, 10 ms apart: latency at every member, each message counted.',
  rates: [
    { count: 'messages', label: 'messages delivered' },
    { count: 'published', label: 'publishes acknowledged' },
  ],
  counts: [
    'opened',
    'refused',
    'dropped',
    'closed',
    'entered',
    'requested',
    'published',
    'refusals',
    'lost',
    'messages',
    'disorder',
    'gaps',
    'unexpected',
  ],
  references: ['naive', 'cluster', 'socket.io', 'socketcluster'],

  addOptions(command) {
    command
      .option('--clients <n>', 'users', readInteger(1, 10_000), 100)
      .option('--rooms <n>', 'rooms; each user is in one', readInteger(1, 10_000), 1)
      .option('--messages <n>', 'messages of each user', readInteger(1, 100_000), 500)
      .option('--every <duration>', 'between two messages of a user; whole milliseconds', readDuration, 10)
      .option(
        '--publishers <n>',
        'so many of the users publish, the others read (default: all)',
        readInteger(1, 10_000),
      )
      .option('--names', 'each user enters under a name that nobody else in its room may have', false)
      .option(
        '--settle <duration>',
        'wait so long for messages under way when the last publish is due: a server may be far behind',
        readDuration,
        90_000,
      )
      .addOption(logOption())
  },

  problem({ rooms, clients, publishers, start, gateways = 1 }) {
    if (gateways > 1 && (start === 'socket.io' || start === 'socketcluster')) {
      return `processes of ${start} would have rooms of their own each: --gateways must be 1`
    }
    if (rooms > clients) return '--rooms must not be over --clients'
    return publishers > clients ? '--publishers must not be over --clients' : undefined
  },
  content: ({ log }) => ({ rooms: { log } }),

  async run(context, { clients, rooms: roomCount, messages, every, publishers = clients, names, settle }) {
    const rooms = Array.from({ length: roomCount }, (_, number) => `room:${number + 1}`)
    const settings = { rooms, publishers, messages, everyMs: every, names }
    const pool = await context.startPool({ workload: 'chat', settings, clientsMax: clients })
    context.phase('enter')
    await openAll(context, pool, { clients, count: 'entered' })

    context.phase('measure')
    const members = membersOf(clients, roomCount)
    const due = dueOf({ members, publishers: membersOf(publishers, roomCount), messages })
    const { counts, reasons, histograms } = pool.totals
    const startedUs = performance.now()
    pool.tell({ begin: true })
    const isDone = () => {
      const { published, refusals, lost, messages: came } = counts
      // Of what was refused nothing comes.
      const deliveries = refusals + lost === 0 ? due.deliveries : published * Math.floor(clients / roomCount)
      return published + refusals + lost >= due.publishes && came >= deliveries
    }
    await context.until(isDone, messages * every + settle)
    const seconds = (performance.now() - startedUs) / 1_000
    context.phase('end')
    const outcomes = (await pool.finish()) as ChatOutcome[]
    const measured = secondsOf(context, 'measure')

    const { latency } = histograms
    // A process without a publisher has none: Infinity, which reaches this one as null.
    const firstDueUs = Math.min(...outcomes.map(({ firstUs }) => firstUs).filter(Number.isFinite))
    const lastMs = (Math.max(...outcomes.map(({ lastUs }) => lastUs)) - firstDueUs) / 1_000
    const { entered, requested, published, refusals, lost } = counts
    const { disorder, gaps, unexpected } = counts
    const came = latency.totalCount > 0
    const ms = (percentile: number) => msAt(latency, percentile)
    return {
      headline: !came
        ? 'No message came to anybody.'
        : `${clients} users in ${roomCount} ${roomCount === 1 ? 'room' : 'rooms'}, ${messages} messages each: ${counts.messages.toLocaleString('en')} deliveries, mean ${(latency.mean / 1_000).toFixed(1)} ms, the last after ${(lastMs / 1_000).toFixed(2)} s.`,
      figures: {
        mean: { label: 'Mean latency', value: came ? latency.mean / 1_000 : undefined, unit: 'ms', better: 'lower' },
        p99: { label: '99th percentile', value: came ? ms(99) : undefined, unit: 'ms', better: 'lower' },
        last: {
          label: 'Last delivery',
          value: came ? lastMs / 1_000 : undefined,
          unit: 's',
          better: 'lower',
          note: `publishes are due over ${(messages * every) / 1_000} s`,
        },
        publishedP99: {
          label: 'Acknowledged, 99th percentile',
          value: msAt(histograms.published, 99),
          unit: 'ms',
          better: 'lower',
        },
        deliveries: {
          label: 'Deliveries',
          value: counts.messages / seconds,
          unit: '/s',
          better: 'higher',
        },
        ...cpuFigures(measured, 'messages'),
        ...usageFigures(measured),
      },
      counts,
      sums: [
        {
          text: `users ${clients} = those who entered${names ? ' under a name of their own' : ''} ${entered}`,
          holds: entered === clients,
        },
        {
          text: `publishes ${requested} = acknowledged ${published} + refused ${refusals} + lost ${lost}`,
          holds: requested === published + refusals + lost,
        },
        {
          text: `every message at every member of its room: due ${due.deliveries} = delivered ${counts.messages}`,
          holds: due.deliveries === counts.messages,
        },
        {
          text: `messages out of order or twice ${disorder}, gaps told ${gaps}, unexpected ${unexpected}`,
          holds: disorder + gaps + unexpected === 0,
        },
      ],
      latency,
      latencyLabel: 'From the time a publish was due to its message at a member',
      reasons,
      measured,
      notes: ['Publishes are due at fixed times, whether or not the server keeps up.'],
    }
  },
}

/** How many users each room has: they go around. */
export const membersOf = (users: number, rooms: number) =>
  Array.from({ length: rooms }, (_, room) => Math.floor(users / rooms) + (room < users % rooms ? 1 : 0))

/** @param load `members`, `publishers` of each room */
export function dueOf({
  members,
  publishers = members,
  messages,
}: {
  members: number[]
  publishers?: number[]
  messages: number
}) {
  const publishes = publishers.reduce((sum, count) => sum + count * messages, 0)
  return { publishes, deliveries: members.reduce((sum, count, room) => sum + publishers[room] * messages * count, 0) }
}
