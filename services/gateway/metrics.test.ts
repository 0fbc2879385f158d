import { createMetrics } from '@keycast/service/metrics'
import { countOne, createCounts } from './counts.ts'
import { exportCounts } from './metrics.ts'
import { createTestGateway } from './test-support.ts'

test('counts are exported at a scrape, again and again the same', async () => {
  const { registry, ...makers } = createMetrics({ service: 'gateway' })
  const counts = createCounts()
  const stats = {
    sessions: 3,
    stalled: 1,
    subscriptions: 7,
    awaiting: 1,
    keys: 2,
    ownValues: 3,
    cacheBytes: 99,
    cacheWantedBytes: 77,
    cacheEntries: 4,
    nodesAlive: 1,
    nodesHeld: 2,
    journalNodesHeld: 1,
    revocations: 2,
    rooms: 5,
    tailBytes: 77,
    waits: 9,
    streams: 8,
    journalNodesAlive: 1,
    journalLogs: { inUse: 'A', others: ['n2', 'n3'] },
    roomsHealed: 6,
    joins: 8,
    watchedMembers: 4,
  }
  exportCounts(
    makers,
    counts,
    () => stats,
    () => [{ issuer: 'access.tokens.0', keys: 1, ageMs: 5_000, failures: 3 }],
    { sessionsMax: 10, cacheBytesMax: 100 },
    () => ({ unread: true, unheard: false, dropped: false }),
  )
  counts.sent.value = 5
  counts.sent.delta = 4
  counts.deltaSavedBytes = 300
  counts.received.get = 2
  counts.getHits = 1
  counts.sentBytes = 1_000
  countOne(counts.closed, 'slow')
  countOne(counts.closed, 'slow')
  counts.deliveries.observe(7)
  counts.stalls.observe(2_000)
  for (let change = 0; change < 2; change++) {
    counts.fanOuts.observe(3)
    counts.valueAges.observe(20)
  }
  counts.changeDelays.observe(43)

  await registry.metrics()
  const text = await registry.metrics()

  for (const line of [
    'keycast_gateway_sessions 3',
    'keycast_gateway_revocations 2',
    'keycast_gateway_user_values 3',
    'keycast_gateway_revocations_incomplete{reason="unread"} 1',
    'keycast_gateway_revocations_incomplete{reason="unheard"} 0',
    'keycast_gateway_jwks_age_seconds{issuer="access.tokens.0"} 5',
    'keycast_gateway_jwks_failures{issuer="access.tokens.0"} 3',
    'keycast_gateway_tokens_refused_total{reason="bad_signature"} 0',
    'keycast_gateway_access_refused_total{code="forbidden"} 0',
    'keycast_gateway_sessions_max 10',
    'keycast_gateway_cache_max_bytes 100',
    'keycast_gateway_subscriptions 7',
    'keycast_gateway_subscriptions_awaiting 1',
    'keycast_gateway_decisions_total{met="asked"} 0',
    'keycast_gateway_watched_keys 2',
    'keycast_gateway_watched_rooms 5',
    'keycast_gateway_tail_bytes 77',
    'keycast_gateway_joins 8',
    'keycast_gateway_watched_member_rooms 4',
    'keycast_gateway_journal_nodes_alive 1',
    'keycast_gateway_journal_nodes_other_log 2',
    'keycast_gateway_journal_log_info{log="A"} 1',
    'keycast_gateway_healed_holes_total 6',
    'keycast_gateway_publishes_total{result="kept"} 0',
    'keycast_gateway_messages_sent_total{type="value"} 5',
    'keycast_gateway_messages_sent_total{type="delta"} 4',
    'keycast_gateway_delta_saved_bytes_total 300',
    'keycast_gateway_messages_received_total{type="get"} 2',
    'keycast_gateway_lookups_total{request="get",result="hit"} 1',
    'keycast_gateway_sent_bytes_total 1000',
    'keycast_gateway_sessions_closed_total{reason="slow"} 2',
    'keycast_gateway_delivery_seconds_bucket{le="0.01"} 1',
    'keycast_gateway_stall_seconds_sum 2',
    'keycast_gateway_fanout_seconds_bucket{le="0.005"} 2',
    'keycast_gateway_fanout_value_age_seconds_sum 0.04',
    'keycast_gateway_change_delay_seconds_sum 0.043',
    'keycast_gateway_change_delay_seconds_count 1',
  ]) {
    expect(text).toContain(`${line}\n`)
  }
})

test('every reason for which a session ends or an upgrade is refused is exported before it happens', async () => {
  const { registry, ...metrics } = createMetrics({ service: 'gateway' })
  createTestGateway({ metrics })
  const text = await registry.metrics()
  for (const reason of ['slow', 'client', 'lost', 'silent', 'restarting']) {
    expect(text).toContain(`keycast_gateway_sessions_closed_total{reason="${reason}"} 0\n`)
  }
  for (const reason of ['full', 'draining', 'origin']) {
    expect(text).toContain(`keycast_gateway_upgrades_refused_total{reason="${reason}"} 0\n`)
  }
})
