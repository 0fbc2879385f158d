// The metrics of a gateway: its counts and the state of its parts, read at each scrape.
import type { RoomsBackbone } from '@keycast/backbone'
import type { MetricMakers } from '@keycast/service'
import { by } from '@keycast/service/metrics'
import type { Missing } from './access/revocations/shared-revocations.ts'
import type { Tokens } from './access/tokens/tokens.ts'
import type { Counts } from './counts.ts'

/**
 * Exports the counts, and the state of the parts as they report it.
 *
 * @param missingRevocations `undefined` where gateways share no list
 */
export function exportCounts(
  { read }: MetricMakers,
  counts: Counts,
  stats: () => Record<
    | 'sessions'
    | 'stalled'
    | 'subscriptions'
    | 'waits'
    | 'streams'
    | 'awaiting'
    | 'keys'
    | 'ownValues'
    | 'cacheBytes'
    | 'cacheWantedBytes'
    | 'cacheEntries'
    | 'nodesAlive'
    | 'nodesHeld'
    | 'revocations'
    | 'rooms'
    | 'tailBytes'
    | 'journalNodesAlive'
    | 'journalNodesHeld'
    | 'roomsHealed'
    | 'joins'
    | 'watchedMembers',
    number
  > & { journalLogs: ReturnType<RoomsBackbone['logs']> },
  jwksStatus: Tokens['jwksStatus'],
  settings: { sessionsMax: number; cacheBytesMax: number },
  missingRevocations: () => Missing | undefined = () => undefined,
) {
  read('sessions', 'Connected clients.', () => stats().sessions)
  read('sessions_max', 'Connected clients that this gateway accepts at most.', () => settings.sessionsMax)
  read('sessions_stalled', 'Sessions whose client has not taken all that was written to it.', () => stats().stalled)
  read('waits', 'Requests at /v1/wait that wait now.', () => stats().waits)
  read('streams', 'Connected clients that are sent events over HTTP instead of a WebSocket.', () => stats().streams)
  read('subscriptions', 'Keys subscribed to, counted once per session.', () => stats().subscriptions)
  read(
    'subscriptions_awaiting',
    'Keys whose backend has still to admit the viewer, counted once per session.',
    () => stats().awaiting,
  )
  read('watched_keys', 'Keys with at least one subscriber here.', () => stats().keys)
  read('cache_bytes', 'Size of all cache entries, as counted against cache_max_bytes.', () => stats().cacheBytes)
  read(
    'cache_wanted_bytes',
    'Of cache_bytes, what cannot be evicted: values that are watched or waited for.',
    () => stats().cacheWantedBytes,
  )
  read('cache_max_bytes', 'Size that the cache may have (GATEWAY_CACHE_BYTES_MAX).', () => settings.cacheBytesMax)
  read('fetcher_nodes_alive', 'Fetcher nodes that this gateway hears.', () => stats().nodesAlive)
  read(
    'nodes_held',
    'Fetcher nodes and journals that answer and are given no keys yet, since they were lost before (hold-down).',
    () => by('service', { fetcher: stats().nodesHeld, journal: stats().journalNodesHeld }),
  )
  read('cache_entries', 'Keys in the cache.', () => stats().cacheEntries)
  read('user_values', "Users' own values in the cache (per: user).", () => stats().ownValues)
  read('revocations', 'Revocations that stand at this gateway.', () => stats().revocations)
  // unread: the list as a whole was not read; unheard: no journal that has it answers; dropped: no place for some.
  read(
    'revocations_incomplete',
    'Whether revocations may be missing here, by reason: 1 where so. Absent without a journal.',
    () =>
      Object.entries(missingRevocations() ?? {}).map(([reason, isSo]) => ({ labels: { reason }, value: Number(isSo) })),
  )
  read(
    'jwks_age_seconds',
    'Time since each key set of access.tokens was last fetched. Absent until the first time.',
    () =>
      jwksStatus().flatMap(({ issuer, ageMs }) =>
        ageMs === undefined ? [] : [{ labels: { issuer }, value: ageMs / 1_000 }],
      ),
  )
  read('jwks_failures', 'Attempts in a row at which a key set could not be fetched.', () =>
    jwksStatus().map(({ issuer, failures }) => ({ labels: { issuer }, value: failures })),
  )

  read('messages_received_total', 'Messages from clients that were handled. Refused ones are in errors_total.', () =>
    by('type', counts.received),
  )
  read('messages_sent_total', 'Messages to clients.', () => by('type', counts.sent))
  read('errors_total', 'Messages error and stale sent to clients, by code.', () => by('code', counts.errors))
  read(
    'sent_bytes_total',
    'Bytes written to sessions, without the frame headers of control messages.',
    () => counts.sentBytes,
  )
  read('compressed_messages_sent_total', 'Values written compressed.', () => counts.sentCompressed)
  read('compression_saved_bytes_total', 'Bytes not written because values were compressed.', () => counts.savedBytes)
  read('compressions_total', 'Versions to be compressed, by result. All but the kept ones are sent uncompressed.', () =>
    by('result', counts.compressions),
  )
  read(
    'delta_saved_bytes_total',
    'Bytes not written because deltas were sent in place of values.',
    () => counts.deltaSavedBytes,
  )
  read(
    'conflated_total',
    'States never written because a newer one of the same key replaced them (conflation).',
    () => counts.conflated,
  )
  read(
    'coalesced_gets_total',
    'Gets that joined one under way for the same key (single flight).',
    () => counts.coalesced,
  )
  read('sessions_closed_total', 'Sessions that ended.', () => by('reason', counts.closed))
  read('upgrades_refused_total', 'Connections that did not become sessions.', () => by('reason', counts.refused))
  read('tokens_accepted_total', 'Tokens that were accepted, by how they came.', () =>
    by('source', counts.tokensAccepted),
  )
  read('tokens_refused_total', 'Tokens that were refused.', () => by('reason', counts.tokensRefused))
  read('access_refused_total', 'Keys refused because no rule of keycast.yaml or of the token covers them.', () =>
    by('code', counts.accessRefused),
  )
  read(
    'decisions_total',
    'Whether a viewer may read a key, as its backend decides: known from memory; coalesced, with a question under way; asked.',
    () => by('met', counts.decisions),
  )
  read('http_values_total', 'Requests at /v1/values, by status.', () => by('status', counts.httpValues))
  read('http_messages_total', 'Requests at /v1/messages, by status.', () => by('status', counts.httpMessages))
  read('http_waits_total', 'Requests at /v1/wait that were answered, by status.', () => by('status', counts.httpWaits))
  read('lookups_total', 'Keys asked for. A hit is one that the cache could answer.', () =>
    [
      ['get', counts.getHits, counts.getMisses] as const,
      ['subscribe', counts.subscribeHits, counts.subscribeMisses] as const,
      ['http', counts.httpHits, counts.httpMisses] as const,
    ].flatMap(([request, hits, misses]) => [
      { labels: { request, result: 'hit' }, value: hits },
      { labels: { request, result: 'miss' }, value: misses },
    ]),
  )

  read('watched_rooms', 'Rooms with at least one subscriber here.', () => stats().rooms)
  read('tail_bytes', 'Newest messages of rooms held here (GATEWAY_TAIL_BYTES_MAX).', () => stats().tailBytes)
  read('joins', 'Rooms that sessions here have joined, counted once per session.', () => stats().joins)
  read('watched_member_rooms', 'Rooms whose members some session here is told of.', () => stats().watchedMembers)
  read('joins_total', 'Joins of rooms, by what became of them.', () => by('result', counts.joins))
  read(
    'journal_nodes_alive',
    'Journal nodes that this gateway hears; NaN without rooms.',
    () => stats().journalNodesAlive,
  )
  read(
    'journal_nodes_other_log',
    'Journal nodes that answer and are not used, because they keep another log.',
    () => stats().journalLogs.others.length,
  )
  read(
    'journal_log_info',
    'Always 1: its label is the id of the log in use, as the journals say it. Gateways must have the same.',
    () => {
      const { inUse } = stats().journalLogs
      return inUse === undefined ? undefined : by('log', { [inUse]: 1 })
    },
  )
  read('publishes_total', 'Publishes, by what became of them.', () => by('result', counts.publishes))
  read(
    'rulings_total',
    'Messages about which a backend was asked first: taken; changed, with other data; refused; or without an answer of use, taken or refused as the namespace says.',
    () => by('ruling', counts.rulings),
  )
  read('resumes_total', 'Subscriptions to rooms from a position, by whether every message after it was there.', () =>
    by('result', counts.resumes),
  )
  read('gaps_total', 'Sessions that were told of a gap in a room, by reason.', () => by('reason', counts.gaps))
  read(
    'healed_holes_total',
    'Holes in the order of a room that the journal was asked to fill.',
    () => stats().roomsHealed,
  )
  read('history_reads_total', 'Reads of the journal for sessions behind the tail.', () => counts.pageReads)
  read(
    'coalesced_history_reads_total',
    'Sessions behind the tail that shared a read under way (single flight).',
    () => counts.pageReadsCoalesced,
  )

  read(
    'fanout_seconds',
    'From a new version to the write to its last subscriber. Clients that do not read are left out.',
    counts.fanOuts,
  )
  read(
    'fanout_value_age_seconds',
    'How long ago the backend was asked for a new version when that was written to its last subscriber.',
    counts.valueAges,
  )
  read(
    'change_delay_seconds',
    "From when a refresh was due to the write of its change to the last subscriber, less the backend's own time.",
    counts.changeDelays,
  )
  read(
    'compression_seconds',
    'From when a version is first wanted compressed to when it is.',
    counts.compressionSeconds,
  )
  read(
    'publish_seconds',
    'From when a publish reaches this gateway to when the journal has answered.',
    counts.publishSeconds,
  )
  read(
    'message_delivery_seconds',
    'From when messages of a room reach this gateway to when they are written, for each write.',
    counts.messageDeliveries,
  )
  read(
    'delivery_seconds',
    'From when a change reaches this gateway to when it is written, for each session, slow ones too.',
    counts.deliveries,
  )
  read(
    'stall_seconds',
    'From when a client does not take what was written to when it has taken it, for each time.',
    counts.stalls,
  )
}
