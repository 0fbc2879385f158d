// The journal's counts, and their export to Prometheus. No label has more values than there are results or error codes.
import type { MetricMakers } from '@keycast/service'
import { by } from '@keycast/service/metrics'
import type { Log } from './log/log.ts'

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
  'capacity',
  'journal_unavailable',
  'rate_limited',
  'publish_unknown',
] as const

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

export function createJournalMetrics({ count, sum, histogram }: MetricMakers) {
  const batch = histogram(
    'batch_messages',
    'Publishes of one batch.',
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000],
  )
  const flushed = histogram('flush_seconds', 'From a batch being given to the log to its being kept.', SECONDS)
  const delivered = sum(
    'delivered_messages_total',
    'Messages given to links, by whether they were in memory or read from the log.',
    { from: ['tail', 'log'] },
  )

  const toldBackend = sum(
    'notify_messages_total',
    'Messages of which a backend was to be told: told, set aside as the backend refused them (4xx), or dropped as they were too old or too many.',
    { outcome: ['told', 'set_aside', 'dropped'] },
  )

  return {
    notified: count(
      'notify_calls_total',
      'Calls that tell a backend (`notify` of a namespace), by what of and by outcome: taken, refused (4xx), failed (tried again).',
      { what: ['messages', 'members'], outcome: ['taken', 'refused', 'failed'] },
    ),
    toldBackend: (outcome: 'told' | 'set_aside' | 'dropped', messages: number) => toldBackend(messages, outcome),
    acknowledged: histogram('acknowledge_seconds', 'From a publish being read to its result.', SECONDS),
    flushed(messages: number, tookMs: number) {
      batch(messages)
      flushed(tookMs)
    },
    published: count(
      'publishes_total',
      'Publishes by result: kept, duplicate, or an error code. rate_limited: one user, address or network has too many waiting.',
      {
        result: publishResults,
      },
    ),
    late: sum(
      'late_publishes_total',
      'Publishes that their gateways had given up before they came into a batch: they are not kept.',
    ),
    handedOver: count(
      'handed_over_total',
      'Values that backends handed over, by outcome: taken, older (a value of a higher rank was there), or refused.',
      { outcome: ['taken', 'older', 'refused'] },
    ),
    deleted: sum('deleted_messages_total', 'Messages that operators had deleted.'),
    resumed: count<string>(
      'watches_total',
      'Watches of rooms: new ones, whole resumes, and those that met a gap (trimmed, epoch, ahead).',
      { outcome: ['new', 'whole', 'trimmed', 'epoch', 'ahead'] },
    ),
    gap: count('gaps_total', 'Streams under way that fell behind the history.'),
    joined: count<string>(
      'joins_total',
      'Joins of rooms by result: joined, or an error code; share: capacity for one user, address or network. Those said again after a loss count again.',
      { result: ['joined', 'name_taken', 'bad_message', 'capacity', 'share'] },
    ),
    told: count('presence_changes_total', 'Batches of changes of the members of a room.'),
    read: (from: 'tail' | 'log', messages: number) => delivered(messages, from),
  }
}

interface Parts {
  hub: { stats: () => { links: number; dueKeys: number; bytesOut: number } }
  log: Pick<Log, 'id' | 'epoch' | 'stats' | 'disk'>
  committer: { stats: () => { waiting: number } }
  deliveries: { stats: () => { readsUnderWay: number } }
  rooms: { stats: () => { rooms: number; tailBytes: number } }
  values: { stats: () => { watched: number } }
  presence: { stats: () => { tabs: number; rooms: number } }
  bounds: { stats: () => { shortening: number } }
  notifier: { stats: () => { bytes: number; rooms: number; oldestMs: number } }
}

/** Exports the levels that the parts report at each scrape. */
export function exportLevels(
  { read }: MetricMakers,
  { hub, log, committer, deliveries, rooms, values, presence, bounds, notifier }: Parts,
) {
  read('log_bytes', 'Messages, messageIds and rooms held, as they count towards the bound.', () => log.stats().bytes)
  read(
    'log_max_bytes',
    'Bytes that messages, messageIds and rooms may take (JOURNAL_BYTES_MAX).',
    () => log.stats().bytesMax,
  )
  read(
    'log_charged_bytes',
    'Bytes held that count for somebody: for users, for guests (clients without a token), and where nobody has a token for addresses. Messages of backends count for nobody.',
    () => by('payer', log.stats().charged),
  )
  const { disk } = log
  if (disk) {
    read('log_disk_bytes', 'Size of the disk that has the log. Only where JOURNAL_LOG is lmdb.', () => disk().bytes)
    read('log_disk_free_bytes', 'Bytes free on the disk that has the log.', () => disk().freeBytes)
  }
  read('log_rooms', 'Rooms that have messages, or had some until not long ago.', () => log.stats().rooms)
  read(
    'shorter_histories',
    'Namespaces whose history in keycast.yaml is shorter than the one in force (JOURNAL_SHORTEN_MS).',
    () => bounds.stats().shortening,
  )
  read(
    'log_clock_ahead_seconds',
    'How far the clock is ahead of the time by which messages expire: it jumped (JOURNAL_SHORTEN_MS).',
    () => (log.stats().clockAheadMs ?? 0) / 1_000,
  )
  read(
    'log_info',
    'Always 1: its label is the id of the log. Journals with different ids have different histories.',
    () => by('log', { [log.id()]: 1 }),
  )
  read(
    'log_epoch_info',
    'Always 1: its label is the epoch of all rooms. Journals that have one log and different epochs write into two Valkeys.',
    () => {
      const epoch = (log.epoch ?? log.id)()
      return epoch === undefined ? undefined : by('epoch', { [epoch]: 1 })
    },
  )
  read('publishes_waiting', 'Publishes read that are in no batch yet.', () => committer.stats().waiting)
  read('watched_rooms', 'Rooms some gateway watches.', () => rooms.stats().rooms)
  read('watched_values', 'Values some gateway watches that backends hand over.', () => values.stats().watched)
  read('members', 'Joins of rooms that stand, or are kept for a while after a loss.', () => presence.stats().tabs)
  read('member_rooms', 'Rooms with members, or whose members some gateway watches.', () => presence.stats().rooms)
  read(
    'tail_bytes',
    'Newest messages held in memory: of watched rooms, and of rooms that were until then, for as long as there is room.',
    () => rooms.stats().tailBytes,
  )
  read('log_reads', 'Parts of histories being read, or waiting to be sent.', () => deliveries.stats().readsUnderWay)
  read(
    'notify_pending_bytes',
    'Messages of which backends are still to be told (JOURNAL_OUTBOX_BYTES_MAX).',
    () => notifier.stats().bytes,
  )
  read(
    'notify_pending_rooms',
    'Rooms of which backends are still to be told something, as the journal that tells knows.',
    () => notifier.stats().rooms,
  )
  read(
    'notify_pending_seconds',
    'Age of the oldest message of which a backend is still to be told, as the journal that tells knows; 0 where there is none.',
    () => notifier.stats().oldestMs / 1_000,
  )
  read('links', 'Gateways linked to this node.', () => hub.stats().links)
  read('link_due_keys', 'Rooms of which some gateway is still to be sent something.', () => hub.stats().dueKeys)
  read(
    'link_unconfirmed_bytes',
    'Bytes sent to gateways that they have not said they took.',
    () => hub.stats().bytesOut,
  )
}
