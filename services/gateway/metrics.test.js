import { createMetrics } from '@keycast/service'
import { countOne, createCounts, exportMetrics } from './metrics.js'

test('what was counted is exported at a scrape, again and again the same', async () => {
  const { registry, ...makers } = createMetrics({ service: 'gateway' })
  const counts = createCounts()
  const stats = { sessions: 3, stalled: 1, subscriptions: 7, keys: 2, cacheBytes: 99, cacheEntries: 4, nodesAlive: 1 }
  const observed = exportMetrics(makers, counts, () => stats, { sessionsMax: 10, cacheBytesMax: 100 })
  counts.sent.value = 5
  counts.sent.delta = 4
  counts.deltaSavedBytes = 300
  counts.received.get = 2
  counts.getHits = 1
  counts.sentBytes = 1_000
  countOne(counts.closed, 'slow')
  countOne(counts.closed, 'slow')
  observed.fannedOut(3)
  observed.valueAged(20)

  await registry.metrics()
  const text = await registry.metrics()

  for (const line of [
    'keycast_gateway_sessions 3',
    'keycast_gateway_sessions_max 10',
    'keycast_gateway_cache_max_bytes 100',
    'keycast_gateway_subscriptions 7',
    'keycast_gateway_watched_keys 2',
    'keycast_gateway_messages_sent_total{type="value"} 5',
    'keycast_gateway_messages_sent_total{type="delta"} 4',
    'keycast_gateway_delta_saved_bytes_total 300',
    'keycast_gateway_messages_received_total{type="get"} 2',
    'keycast_gateway_lookups_total{request="get",result="hit"} 1',
    'keycast_gateway_sent_bytes_total 1000',
    'keycast_gateway_sessions_closed_total{reason="slow"} 2',
    'keycast_gateway_fanout_seconds_bucket{le="0.005"} 1',
    'keycast_gateway_fanout_value_age_seconds_sum 0.02',
  ]) {
    expect(text).toContain(`${line}\n`)
  }
})
