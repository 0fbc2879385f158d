// Rooms: is what is published kept at once, does it reach every reader, and is there room for it?
import { dashboard, lines, stat } from './panels.ts'

const gateways = 'instance=~"$gateway"'

/** @param histogram without _bucket */
const quantileOf = (quantile: number, histogram: string, by: string, labels = '') =>
  `histogram_quantile(${quantile}, sum by (${by}) (rate(${histogram}_bucket{${labels}}[$__rate_interval])))`

/** @param name of the counter */
const rateBy = (name: string, by: string, labels = '') => `sum by (${by}) (rate(${name}{${labels}}[$__rate_interval]))`

const quantiles = [0.5, 0.99]

export const rooms = dashboard({
  uid: 'keycast-rooms',
  title: 'Keycast: rooms',
  description: 'Is what is published into rooms kept, does it reach every reader, and is there room for it?',
  variables: [{ name: 'gateway', label: 'Gateway', query: 'label_values(keycast_gateway_sessions, instance)' }],
  rows: [
    {
      title: 'Health of rooms',
      height: 5,
      perLine: 6,
      panels: [
        stat({
          title: 'Journals heard',
          description: 'At the gateway that hears the fewest. At zero nothing can be published there.',
          unit: 'short',
          steps: [{ color: 'red' }, { color: 'green', from: 1 }],
          queries: [{ expr: 'min(keycast_gateway_journal_nodes_alive)' }],
        }),
        stat({
          title: 'Publishes',
          description: 'Publishes per second that were kept, over all gateways.',
          unit: 'cps',
          queries: [{ expr: 'sum(keycast:publishes:rate5m{result="kept"})' }],
        }),
        stat({
          title: 'Publish to result, 99th percentile',
          description: 'From a publish reaching a gateway to its result: what a publisher waits, without the network.',
          unit: 's',
          decimals: 3,
          steps: [{ color: 'green' }, { color: 'orange', from: 0.25 }, { color: 'red', from: 1 }],
          queries: [{ expr: 'keycast:publish_seconds:p99_rate1m' }],
        }),
        stat({
          title: 'Messages sent',
          description: 'Messages of rooms written to sessions, per second.',
          unit: 'cps',
          queries: [{ expr: 'keycast:messages_delivered:rate1m' }],
        }),
        stat({
          title: 'Readers told of a gap',
          description:
            'Per second: sessions that fell further behind than the history reaches, or whose history was replaced.',
          unit: 'cps',
          steps: [{ color: 'green' }, { color: 'orange', from: 0.1 }, { color: 'red', from: 10 }],
          queries: [{ expr: 'sum(rate(keycast_gateway_gaps_total[1m]))' }],
        }),
        stat({
          title: 'Log used',
          description: 'Share of JOURNAL_BYTES_MAX, of the fullest journal. At the end publishers are told log_full.',
          unit: 'percentunit',
          min: 0,
          max: 1,
          steps: [{ color: 'green' }, { color: 'orange', from: 0.8 }, { color: 'red', from: 0.95 }],
          queries: [{ expr: 'max(keycast_journal_log_bytes / keycast_journal_log_max_bytes)' }],
        }),
      ],
    },
    {
      title: 'Publishing',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Publishes, by result',
          description:
            'kept and duplicate are what publishers want. journal_unavailable and publish_unknown: look at the journal. Others are the publishers’ own: the table of codes in docs/protocol.md explains each.',
          unit: 'cps',
          min: 0,
          queries: [
            { expr: `${rateBy('keycast_gateway_publishes_total', 'result', gateways)} > 0`, legend: '{{result}}' },
          ],
        }),
        lines({
          title: 'Publish to result',
          description: 'As a gateway sees it: the way to the journal and back, and the time that the journal takes.',
          unit: 's',
          min: 0,
          queries: quantiles.map(quantile => ({
            expr: quantileOf(quantile, 'keycast_gateway_publish_seconds', 'instance, le', gateways),
            legend: `{{instance}} p${quantile * 100}`,
          })),
        }),
        lines({
          title: 'In the journal',
          description:
            'From a publish being read to its result, and the part of it that the log takes. Where only the first grows, publishes wait for a batch.',
          unit: 's',
          min: 0,
          queries: [
            { expr: quantileOf(0.99, 'keycast_journal_acknowledge_seconds', 'le'), legend: 'result p99' },
            { expr: quantileOf(0.5, 'keycast_journal_acknowledge_seconds', 'le'), legend: 'result p50' },
            { expr: quantileOf(0.99, 'keycast_journal_flush_seconds', 'le'), legend: 'log p99' },
          ],
        }),
        lines({
          title: 'Publishes of one batch',
          description: 'Publishes share one flush of the disk. Batches grow with load by themselves.',
          unit: 'short',
          min: 0,
          queries: quantiles.map(quantile => ({
            expr: quantileOf(quantile, 'keycast_journal_batch_messages', 'le'),
            legend: `p${quantile * 100}`,
          })),
        }),
        lines({
          title: 'Publishes waiting for a batch',
          description: 'Above zero for long the disk is behind. At 50,000 publishers are told journal_unavailable.',
          unit: 'short',
          min: 0,
          queries: [{ expr: 'keycast_journal_publishes_waiting', legend: '{{instance}}' }],
        }),
        lines({
          title: 'Event loop of the journal',
          description: 'Share of time the journal is busy. Near 1 it takes no more, whatever the disk does.',
          unit: 'percentunit',
          min: 0,
          max: 1,
          queries: [
            { expr: 'instance:keycast_journal_event_loop_utilization:ratio_rate1m', legend: '{{instance}}' },
            { expr: 'instance:keycast_journal_cpu_seconds:rate1m', legend: '{{instance}} CPUs' },
          ],
        }),
      ],
    },
    {
      title: 'Reading',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Message to session',
          description: 'From messages reaching a gateway to their being written, once for each write.',
          unit: 's',
          min: 0,
          queries: quantiles.map(quantile => ({
            expr: quantileOf(quantile, 'keycast_gateway_message_delivery_seconds', 'instance, le', gateways),
            legend: `{{instance}} p${quantile * 100}`,
          })),
        }),
        lines({
          title: 'Subscriptions that resume',
          description:
            'From a position, by whether every message after it was there. not_recovered: clients were away for longer than history in keycast.yaml reaches.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_gateway_resumes_total', 'result', gateways), legend: '{{result}}' }],
        }),
        lines({
          title: 'Gaps, by reason',
          description:
            'trimmed: a reader is behind the history. epoch: the journal has another history. ahead: a reader names a message that never was.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_gateway_gaps_total', 'reason', gateways), legend: '{{reason}}' }],
        }),
        lines({
          title: 'Readers behind the tail',
          description:
            'Reads of the journal for sessions that the messages in memory no longer serve. Sessions that want the same share a read.',
          unit: 'cps',
          min: 0,
          queries: [
            { expr: rateBy('keycast_gateway_history_reads_total', 'instance', gateways), legend: '{{instance}} reads' },
            {
              expr: rateBy('keycast_gateway_coalesced_history_reads_total', 'instance', gateways),
              legend: '{{instance}} shared',
            },
          ],
        }),
        lines({
          title: 'Holes healed',
          description:
            'Messages that were lost between journal and gateway, noticed by their number and asked for again.',
          unit: 'cps',
          min: 0,
          queries: [
            { expr: rateBy('keycast_gateway_healed_holes_total', 'instance', gateways), legend: '{{instance}}' },
          ],
        }),
        lines({
          title: 'Given to gateways',
          description: 'Messages per second, by whether the journal had them in memory or read them from its log.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_journal_delivered_messages_total', 'from'), legend: '{{from}}' }],
        }),
      ],
    },
    {
      title: 'What backends are told (notify)',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Backends told',
          description:
            'Messages that backends with notify took, per second. set_aside: they refused them. dropped: they were away for too long.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_journal_notify_messages_total', 'outcome'), legend: '{{outcome}}' }],
        }),
        lines({
          title: 'To be told',
          description:
            'Messages that backends with notify have still to take. At JOURNAL_OUTBOX_BYTES_MAX the oldest are dropped.',
          unit: 'bytes',
          min: 0,
          queries: [{ expr: 'max(keycast_journal_notify_pending_bytes)', legend: 'bytes' }],
        }),
        lines({
          title: 'Oldest that is to be told',
          description:
            'Age of the oldest message that a backend has still to take, as the journal that tells knows. After 24 hours it is dropped.',
          unit: 's',
          min: 0,
          queries: [{ expr: 'max(keycast_journal_notify_pending_seconds)', legend: 'age' }],
        }),
        lines({
          title: 'Rooms to be told of',
          description:
            'Rooms with something that a backend has still to take. Of each one call is under way at a time.',
          unit: 'short',
          min: 0,
          queries: [{ expr: 'max(keycast_journal_notify_pending_rooms)', legend: 'rooms' }],
        }),
        lines({
          title: 'Calls to backends that tell them',
          description:
            'By what of: messages and members by journals, viewers by fetchers. refused: a 4xx, not told again. failed: tried again.',
          unit: 'reqps',
          min: 0,
          queries: [
            { expr: rateBy('keycast_journal_notify_calls_total', 'what, outcome'), legend: '{{what}} {{outcome}}' },
            { expr: rateBy('keycast_fetcher_notify_calls_total', 'outcome'), legend: 'viewers {{outcome}}' },
          ],
        }),
      ],
    },
    {
      title: 'Values that journals keep (source: pushed)',
      height: 8,
      perLine: 2,
      panels: [
        lines({
          title: 'Handed over to journals',
          description:
            'Values and deletions that backends handed over. older: a value of a higher rank was there. refused: there was no room, or gateways have another configuration.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_journal_handed_over_total', 'outcome'), legend: '{{outcome}}' }],
        }),
        lines({
          title: 'Watched values of journals',
          description: 'Values that some gateway watches, by journal. Each change goes to every gateway that watches.',
          unit: 'short',
          min: 0,
          queries: [{ expr: 'keycast_journal_watched_values', legend: '{{instance}}' }],
        }),
      ],
    },
    {
      title: 'Messages that backends are asked about',
      height: 8,
      perLine: 2,
      panels: [
        lines({
          title: 'Asked before they are taken',
          description:
            'Messages of namespaces with publish: { ask }, by what became of them. unanswered: the backend said nothing of use.',
          unit: 'cps',
          min: 0,
          queries: [
            { expr: `${rateBy('keycast_gateway_rulings_total', 'ruling', gateways)} > 0`, legend: '{{ruling}}' },
          ],
        }),
        lines({
          title: 'Time to a ruling, p99',
          description:
            'From a question going to a worker to its answer. Publishers wait for it, and for its turn before.',
          unit: 's',
          min: 0,
          queries: [
            {
              expr: 'histogram_quantile(0.99, sum by (le) (rate(keycast_fetcher_ruling_seconds_bucket[$__rate_interval])))',
              legend: 'p99',
            },
          ],
        }),
      ],
    },
    {
      title: 'Members',
      height: 8,
      perLine: 2,
      panels: [
        lines({
          title: 'Joins, by result',
          description:
            'As gateways answered them. name_taken and bad_message are the clients’ own; journal_unavailable: look at the journal.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: `${rateBy('keycast_gateway_joins_total', 'result', gateways)} > 0`, legend: '{{result}}' }],
        }),
        lines({
          title: 'Refused by journals',
          description:
            'share: joins of one user, address or network that holds as many as it may; of publishes that is capacity. capacity of joins: nobody has room. rate_limited: publishes of one that has too many waiting.',
          unit: 'cps',
          min: 0,
          queries: [
            {
              expr: 'sum by (result) (rate(keycast_journal_joins_total{result=~"share|capacity"}[$__rate_interval]))',
              legend: 'joins: {{result}}',
            },
            {
              expr: 'sum by (result) (rate(keycast_journal_publishes_total{result=~"capacity|rate_limited"}[$__rate_interval]))',
              legend: 'publishes: {{result}}',
            },
          ],
        }),
        lines({
          title: 'Members and their rooms',
          description:
            'Joins that stand, at gateways and in the journal, which keeps those of a lost gateway for 10 s; and the rooms that they are in.',
          unit: 'short',
          min: 0,
          queries: [
            { expr: `sum(keycast_gateway_joins{${gateways}})`, legend: 'joins at gateways' },
            { expr: 'sum(keycast_journal_members)', legend: 'joins in journals' },
            { expr: 'sum(keycast_journal_member_rooms)', legend: 'rooms in journals' },
          ],
        }),
        lines({
          title: 'Changes told',
          description:
            'Batches of changes that journals made, of all rooms, and rooms whose members some session of a gateway is told of.',
          unit: 'short',
          min: 0,
          queries: [
            {
              expr: 'sum(rate(keycast_journal_presence_changes_total[$__rate_interval]))',
              legend: 'batches per second',
            },
            { expr: `keycast_gateway_watched_member_rooms{${gateways}}`, legend: 'rooms told of, {{instance}}' },
          ],
        }),
      ],
    },
    {
      title: 'Between gateways and journals',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Watches, by outcome',
          description:
            'new: a room’s first reader at a gateway. whole: a gateway went on where it was. trimmed, epoch, ahead: it could not, and readers were told of a gap.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_journal_watches_total', 'outcome'), legend: '{{outcome}}' }],
        }),
        lines({
          title: 'Gateways that lag',
          description:
            'Rooms of which gateways are still to be sent something, and parts of histories being read for them. High for long: a gateway takes too little.',
          unit: 'short',
          min: 0,
          queries: [
            { expr: 'keycast_journal_link_due_keys', legend: '{{instance}} rooms' },
            { expr: 'keycast_journal_log_reads', legend: '{{instance}} reads' },
          ],
        }),
        lines({
          title: 'Under way to gateways',
          description:
            'Bytes sent to gateways that they have not said they took: 8 MiB each and 64 MiB in all at most.',
          unit: 'bytes',
          min: 0,
          queries: [{ expr: 'keycast_journal_link_unconfirmed_bytes', legend: '{{instance}}' }],
        }),
        lines({
          title: 'Gateways linked',
          description: 'Each journal should have as many as there are gateways.',
          unit: 'short',
          min: 0,
          queries: [{ expr: 'keycast_journal_links', legend: '{{instance}}' }],
        }),
        lines({
          title: 'Fallen behind the history',
          description:
            'Streams under way to gateways that the history no longer reached: all readers there were told of a gap.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: rateBy('keycast_journal_gaps_total', 'instance'), legend: '{{instance}}' }],
        }),
        lines({
          title: 'Read over HTTP',
          description: 'Requests at /v1/messages, by status.',
          unit: 'reqps',
          min: 0,
          queries: [{ expr: rateBy('keycast_gateway_http_messages_total', 'status', gateways), legend: '{{status}}' }],
        }),
      ],
    },
    {
      title: 'What is held',
      height: 8,
      perLine: 3,
      panels: [
        lines({
          title: 'Log',
          description: 'Messages held, against JOURNAL_BYTES_MAX. The file takes more than that, and never shrinks.',
          unit: 'bytes',
          min: 0,
          queries: [
            { expr: 'keycast_journal_log_bytes', legend: '{{instance}} held' },
            { expr: 'keycast_journal_log_max_bytes', legend: '{{instance}} at most' },
          ],
        }),
        lines({
          title: 'Counts for',
          description:
            'Bytes held, by whom they count for: users, guests (clients without a token), or addresses where nobody has a token. One user may hold a ninth of what clients may fill, all guests a quarter, an address half.',
          unit: 'bytes',
          min: 0,
          queries: [{ expr: 'keycast_journal_log_charged_bytes', legend: '{{payer}} at {{instance}}' }],
        }),
        lines({
          title: 'Rooms',
          description:
            'Rooms with messages or a place in the log, those that some gateway watches now, and those with readers at each gateway.',
          unit: 'short',
          min: 0,
          queries: [
            { expr: 'sum(keycast_journal_log_rooms)', legend: 'in the log' },
            { expr: 'sum(keycast_journal_watched_rooms)', legend: 'watched' },
            { expr: `keycast_gateway_watched_rooms{${gateways}}`, legend: 'with readers at {{instance}}' },
          ],
        }),
        lines({
          title: 'Newest messages in memory',
          description: 'Of watched rooms, in the journal and in gateways (GATEWAY_TAIL_BYTES_MAX).',
          unit: 'bytes',
          min: 0,
          queries: [
            { expr: 'keycast_journal_tail_bytes', legend: 'journal {{instance}}' },
            { expr: `keycast_gateway_tail_bytes{${gateways}}`, legend: 'gateway {{instance}}' },
          ],
        }),
        lines({
          title: 'Messages deleted',
          description: 'By operators, for good. Their names stand in the audit log of the gateways.',
          unit: 'cps',
          min: 0,
          queries: [{ expr: 'sum(rate(keycast_journal_deleted_messages_total[$__rate_interval]))', legend: 'deleted' }],
        }),
        lines({
          title: 'Retention that waits',
          description:
            'How far the clock has jumped ahead of the time by which messages expire, on lmdb. It counts after JOURNAL_SHORTEN_MS, as a shorter history does.',
          unit: 's',
          min: 0,
          queries: [{ expr: 'keycast_journal_log_clock_ahead_seconds', legend: '{{instance}}' }],
        }),
      ],
    },
  ],
})
