// The journal's counts, and their export to Prometheus. No label has more values than there are results or error codes.
import type { RoomsHub } from '@keycast/backbone'
import { createFastHistogram, type Metrics } from '@keycast/service'
import type { Log } from './log/log.ts'

type Makers = Pick<Metrics, 'counter' | 'gauge' | 'histogram' | 'fastHistogram'>

export type PublishResult = (typeof publishResults)[number]

/** Outcomes of publishes: kept, kept before, or refused with a code. */
const publishResults = [
  'kept',
  'duplicate',
  'bad_message',
  'too_large',
  'unknown_namespace',
  'id_conflict',
  'log_full',
  'journal_unavailable',
  'publish_unknown',
] as const

export function createJournalMetrics({ counter, histogram, fastHistogram }: Makers) {
  const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
  const acknowledged = createFastHistogram(seconds)
  fastHistogram({ name: 'acknowledge_seconds', help: 'From a publish being read to its result.', source: acknowledged })
  const flushed = createFastHistogram(seconds)
  fastHistogram({
    name: 'flush_seconds',
    help: 'From a batch being given to the log to its being kept.',
    source: flushed,
  })
  const batch = histogram({
    name: 'batch_messages',
    help: 'Publishes of one batch.',
    buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000],
  })
  const publishes = counter({
    name: 'publishes_total',
    help: 'Publishes by result: kept, duplicate, or an error code.',
    labelNames: ['result'],
  })
  const late = counter({
    name: 'late_publishes_total',
    help: 'Publishes that their gateways had given up before they came into a batch: they are not kept.',
  })
  const resumes = counter({
    name: 'watches_total',
    help: 'Watches of rooms: new ones, whole resumes, and those that met a gap (trimmed, epoch, ahead).',
    labelNames: ['outcome'],
  })
  const gaps = counter({ name: 'gaps_total', help: 'Streams under way that fell behind the history.' })
  const delivered = counter({
    name: 'delivered_messages_total',
    help: 'Messages given to links, by whether they were in memory or read from the log.',
    labelNames: ['from'],
  })
  const joins = counter({
    name: 'joins_total',
    help: 'Joins of rooms by result: joined, or an error code. Those said again after a loss count again.',
    labelNames: ['result'],
  })
  const changes = counter({
    name: 'presence_changes_total',
    help: 'Batches of changes of the members of a room.',
  })
  for (const result of ['joined', 'name_taken', 'bad_message', 'capacity']) joins.inc({ result }, 0)
  for (const result of publishResults) publishes.inc({ result }, 0)
  for (const outcome of ['new', 'whole', 'trimmed', 'epoch', 'ahead']) resumes.inc({ outcome }, 0)
  for (const from of ['tail', 'log']) delivered.inc({ from }, 0)

  return {
    acknowledged: (tookMs: number) => acknowledged.observe(tookMs),
    flushed(messages: number, tookMs: number) {
      batch.observe(messages)
      flushed.observe(tookMs)
    },
    published: (result: PublishResult) => publishes.inc({ result }),
    late: (publishes: number) => late.inc(publishes),
    resumed: (outcome: string) => resumes.inc({ outcome }),
    gap: () => gaps.inc(),
    joined: (result: string) => joins.inc({ result }),
    told: () => changes.inc(),
    read: (from: 'tail' | 'log', messages: number) => delivered.inc({ from }, messages),
  }
}

interface Parts {
  hub: Pick<RoomsHub, 'stats'>
  log: Pick<Log, 'id' | 'stats'>
  committer: Pick<ReturnType<typeof import('./group-commit.ts').createCommitter>, 'stats'>
  deliveries: Pick<ReturnType<typeof import('./deliveries/deliveries.ts').createDeliveries>, 'stats'>
  rooms: Pick<ReturnType<typeof import('./watched-rooms.ts').createWatchedRooms>, 'stats'>
  presence: Pick<ReturnType<typeof import('./presence/presence.ts').createPresence>, 'stats'>
  bounds: Pick<ReturnType<typeof import('./history-bounds.ts').createHistoryBounds>, 'stats'>
}

/** Exports the levels that the parts report at each scrape. */
export function exportLevels(
  { gauge }: Pick<Makers, 'gauge'>,
  { hub, log, committer, deliveries, rooms, presence, bounds }: Parts,
) {
  const level = (name: string, help: string, read: () => number) =>
    gauge({
      name,
      help,
      collect() {
        this.set(read())
      },
    })
  level('log_bytes', 'Messages, messageIds and rooms held, as they count towards the bound.', () => log.stats().bytes)
  level(
    'log_max_bytes',
    'Bytes that messages, messageIds and rooms may take (JOURNAL_BYTES_MAX).',
    () => log.stats().bytesMax,
  )
  level('log_rooms', 'Rooms that have messages, or had some until not long ago.', () => log.stats().rooms)
  level(
    'shorter_histories',
    'Namespaces whose history in keycast.yaml is shorter than the one in force (JOURNAL_SHORTEN_MS).',
    () => bounds.stats().shortening,
  )
  gauge({
    name: 'log_info',
    help: 'Always 1: its label is the id of the log. Journals with different ids have different histories.',
    labelNames: ['log'],
    collect() {
      this.reset()
      this.set({ log: log.id() }, 1)
    },
  })
  level('publishes_waiting', 'Publishes read that are in no batch yet.', () => committer.stats().waiting)
  level('watched_rooms', 'Rooms some gateway watches.', () => rooms.stats().rooms)
  level('members', 'Joins of rooms that stand, or are kept for a while after a loss.', () => presence.stats().tabs)
  level('member_rooms', 'Rooms with members, or whose members some gateway watches.', () => presence.stats().rooms)
  level('tail_bytes', 'Newest messages of watched rooms, held in memory.', () => rooms.stats().tailBytes)
  level('log_reads', 'Parts of histories being read, or waiting to be sent.', () => deliveries.stats().readsUnderWay)
  level('links', 'Gateways linked to this node.', () => hub.stats().links)
  level('link_due_keys', 'Rooms of which some gateway is still to be sent something.', () => hub.stats().dueKeys)
  level(
    'link_unconfirmed_bytes',
    'Bytes sent to gateways that they have not said they took.',
    () => hub.stats().bytesOut,
  )
}
