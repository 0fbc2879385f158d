// The metrics of a gateway: its counts and the state of its parts, read at each scrape.
import type { RoomsBackbone } from '@keycast/backbone'
import type { Metrics } from '@keycast/service'
import type { Missing } from './access/revocations/shared-revocations.ts'
import type { Tokens } from './access/tokens/tokens.ts'
import type { Counts } from './counts.ts'

/** Histograms of events that happen once per version: seldom enough to be recorded at once. */
export function createHistograms({ histogram }: Pick<Metrics, 'histogram'>) {
  const fanOut = histogram({
    name: 'fanout_seconds',
    help: 'From a new version to the write to its last subscriber. Clients that do not read are left out.',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  })
  const compression = histogram({
    name: 'compression_seconds',
    help: 'From when a version is first wanted compressed to when it is.',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
  })
  const valueAge = histogram({
    name: 'fanout_value_age_seconds',
    help: 'How long ago the backend was asked for a new version when that was written to its last subscriber.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  })
  const delay = histogram({
    name: 'change_delay_seconds',
    help: "From when a refresh was due to the write of its change to the last subscriber, less the backend's own time.",
    buckets: [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  })

  return {
    /**
     * A new version was written to all its subscribers.
     *
     * @param when its fan-out began and ended, when the backend was asked for it, and how long the fetcher kept it
     *   waiting, if it was a change there
     */
    delivered({
      startMs,
      endMs,
      askedAtMs,
      delayMs,
    }: {
      startMs: number
      endMs: number
      askedAtMs: number
      delayMs: number | undefined
    }) {
      const tookMs = endMs - startMs
      fanOut.observe(tookMs / 1_000)
      valueAge.observe(Math.max(0, endMs - askedAtMs) / 1_000)
      if (delayMs !== undefined) delay.observe((delayMs + tookMs) / 1_000)
    },
    compressed: (ms: number) => compression.observe(ms / 1_000),
  }
}

/**
 * Exports the counts, and the state of the parts as they report it.
 *
 * @param missingRevocations `undefined` where gateways share no list
 */
export function exportCounts(
  { counter, gauge, fastHistogram }: Pick<Metrics, 'counter' | 'gauge' | 'fastHistogram'>,
  counts: Counts,
  stats: () => Record<
    | 'sessions'
    | 'stalled'
    | 'subscriptions'
    | 'waits'
    | 'awaiting'
    | 'keys'
    | 'ownValues'
    | 'cacheBytes'
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
  const total = (name: string, help: string, read: () => number) =>
    counter({
      name,
      help,
      collect() {
        this.reset()
        this.inc(read())
      },
    })

  const totals = (name: string, help: string, label: string, read: () => Record<string, number>) =>
    counter({
      name,
      help,
      labelNames: [label],
      collect() {
        this.reset()
        for (const [key, count] of Object.entries(read())) this.inc({ [label]: key }, count)
      },
    })

  const level = (name: string, help: string, read: () => number) =>
    gauge({
      name,
      help,
      collect() {
        this.set(read())
      },
    })

  level('sessions', 'Connected clients.', () => stats().sessions)
  level('sessions_max', 'Connected clients that this gateway accepts at most.', () => settings.sessionsMax)
  level('sessions_stalled', 'Sessions whose client has not taken all that was written to it.', () => stats().stalled)
  level('waits', 'Requests at /v1/wait that wait now.', () => stats().waits)
  level('subscriptions', 'Keys subscribed to, counted once per session.', () => stats().subscriptions)
  level(
    'subscriptions_awaiting',
    'Keys whose backend has still to admit the viewer, counted once per session.',
    () => stats().awaiting,
  )
  level('watched_keys', 'Keys with at least one subscriber here.', () => stats().keys)
  level('cache_bytes', 'Size of all cache entries, as counted against cache_max_bytes.', () => stats().cacheBytes)
  level('cache_max_bytes', 'Size that the cache may have (GATEWAY_CACHE_BYTES_MAX).', () => settings.cacheBytesMax)
  level('fetcher_nodes_alive', 'Fetcher nodes that this gateway hears.', () => stats().nodesAlive)
  gauge({
    name: 'nodes_held',
    help: 'Fetcher nodes and journals that answer and are given no keys yet, since they were lost before (hold-down).',
    labelNames: ['service'],
    collect() {
      const { nodesHeld, journalNodesHeld } = stats()
      this.set({ service: 'fetcher' }, nodesHeld)
      this.set({ service: 'journal' }, journalNodesHeld)
    },
  })
  level('cache_entries', 'Keys in the cache.', () => stats().cacheEntries)
  level('user_values', "Users' own values in the cache (per: user).", () => stats().ownValues)
  level('revocations', 'Revocations that stand at this gateway.', () => stats().revocations)
  // unread: the list as a whole was not read; unheard: no journal that has it answers; dropped: no place for some.
  gauge({
    name: 'revocations_incomplete',
    help: 'Whether revocations may be missing here, by reason: 1 where so. Absent without a journal.',
    labelNames: ['reason'],
    collect() {
      this.reset()
      for (const [reason, isSo] of Object.entries(missingRevocations() ?? {})) this.set({ reason }, Number(isSo))
    },
  })
  gauge({
    name: 'jwks_age_seconds',
    help: 'Time since each key set of access.tokens was last fetched. Absent until the first time.',
    labelNames: ['issuer'],
    collect() {
      this.reset()
      for (const { issuer, ageMs } of jwksStatus()) if (ageMs !== undefined) this.set({ issuer }, ageMs / 1_000)
    },
  })
  gauge({
    name: 'jwks_failures',
    help: 'Attempts in a row at which a key set could not be fetched.',
    labelNames: ['issuer'],
    collect() {
      this.reset()
      for (const { issuer, failures } of jwksStatus()) this.set({ issuer }, failures)
    },
  })

  totals(
    'messages_received_total',
    'Messages from clients that were handled. Refused ones are in errors_total.',
    'type',
    () => counts.received,
  )
  totals('messages_sent_total', 'Messages to clients.', 'type', () => counts.sent)
  totals('errors_total', 'Messages error and stale sent to clients, by code.', 'code', () => counts.errors)
  total(
    'sent_bytes_total',
    'Bytes written to sessions, without the frame headers of control messages.',
    () => counts.sentBytes,
  )
  total('compressed_messages_sent_total', 'Values written compressed.', () => counts.sentCompressed)
  total('compression_saved_bytes_total', 'Bytes not written because values were compressed.', () => counts.savedBytes)
  totals(
    'compressions_total',
    'Versions to be compressed, by result. All but the kept ones are sent uncompressed.',
    'result',
    () => counts.compressions,
  )
  total(
    'delta_saved_bytes_total',
    'Bytes not written because deltas were sent in place of values.',
    () => counts.deltaSavedBytes,
  )
  total(
    'conflated_total',
    'States never written because a newer one of the same key replaced them (conflation).',
    () => counts.conflated,
  )
  total(
    'coalesced_gets_total',
    'Gets that joined one under way for the same key (single flight).',
    () => counts.coalesced,
  )
  totals('sessions_closed_total', 'Sessions that ended.', 'reason', () => counts.closed)
  totals('upgrades_refused_total', 'Connections that did not become sessions.', 'reason', () => counts.refused)
  totals('tokens_accepted_total', 'Tokens that were accepted, by how they came.', 'source', () => counts.tokensAccepted)
  totals('tokens_refused_total', 'Tokens that were refused.', 'reason', () => counts.tokensRefused)
  totals(
    'access_refused_total',
    'Keys refused because no rule of keycast.yaml or of the token covers them.',
    'code',
    () => counts.accessRefused,
  )
  totals(
    'decisions_total',
    'Whether a viewer may read a key, as its backend decides: known from memory; coalesced, with a question under way; asked.',
    'met',
    () => counts.decisions,
  )
  totals('http_values_total', 'Requests at /v1/values, by status.', 'status', () => counts.httpValues)
  totals('http_messages_total', 'Requests at /v1/messages, by status.', 'status', () => counts.httpMessages)
  totals('http_waits_total', 'Requests at /v1/wait that were answered, by status.', 'status', () => counts.httpWaits)
  counter({
    name: 'lookups_total',
    help: 'Keys asked for. A hit is one that the cache could answer.',
    labelNames: ['request', 'result'],
    collect() {
      this.reset()
      this.inc({ request: 'get', result: 'hit' }, counts.getHits)
      this.inc({ request: 'get', result: 'miss' }, counts.getMisses)
      this.inc({ request: 'subscribe', result: 'hit' }, counts.subscribeHits)
      this.inc({ request: 'subscribe', result: 'miss' }, counts.subscribeMisses)
      this.inc({ request: 'http', result: 'hit' }, counts.httpHits)
      this.inc({ request: 'http', result: 'miss' }, counts.httpMisses)
    },
  })

  level('watched_rooms', 'Rooms with at least one subscriber here.', () => stats().rooms)
  level('tail_bytes', 'Newest messages of rooms held here (GATEWAY_TAIL_BYTES_MAX).', () => stats().tailBytes)
  level('joins', 'Rooms that sessions here have joined, counted once per session.', () => stats().joins)
  level('watched_member_rooms', 'Rooms whose members some session here is told of.', () => stats().watchedMembers)
  totals('joins_total', 'Joins of rooms, by what became of them.', 'result', () => counts.joins)
  level(
    'journal_nodes_alive',
    'Journal nodes that this gateway hears; NaN without rooms.',
    () => stats().journalNodesAlive,
  )
  level(
    'journal_nodes_other_log',
    'Journal nodes that answer and are not used, because they keep another log.',
    () => stats().journalLogs.others.length,
  )
  gauge({
    name: 'journal_log_info',
    help: 'Always 1: its label is the id of the log in use, as the journals say it. Gateways must have the same.',
    labelNames: ['log'],
    collect() {
      this.reset()
      const { inUse } = stats().journalLogs
      if (inUse !== undefined) this.set({ log: inUse }, 1)
    },
  })
  totals('publishes_total', 'Publishes, by what became of them.', 'result', () => counts.publishes)
  totals(
    'resumes_total',
    'Subscriptions to rooms from a position, by whether every message after it was there.',
    'result',
    () => counts.resumes,
  )
  totals('gaps_total', 'Sessions that were told of a gap in a room, by reason.', 'reason', () => counts.gaps)
  total(
    'healed_holes_total',
    'Holes in the order of a room that the journal was asked to fill.',
    () => stats().roomsHealed,
  )
  total('history_reads_total', 'Reads of the journal for sessions behind the tail.', () => counts.pageReads)
  total(
    'coalesced_history_reads_total',
    'Sessions behind the tail that shared a read under way (single flight).',
    () => counts.pageReadsCoalesced,
  )

  fastHistogram({
    name: 'publish_seconds',
    help: 'From when a publish reaches this gateway to when the journal has answered.',
    source: counts.publishSeconds,
  })
  fastHistogram({
    name: 'message_delivery_seconds',
    help: 'From when messages of a room reach this gateway to when they are written, for each write.',
    source: counts.messageDeliveries,
  })
  fastHistogram({
    name: 'delivery_seconds',
    help: 'From when a change reaches this gateway to when it is written, for each session, slow ones too.',
    source: counts.deliveries,
  })
  fastHistogram({
    name: 'stall_seconds',
    help: 'From when a client does not take what was written to when it has taken it, for each time.',
    source: counts.stalls,
  })
}
