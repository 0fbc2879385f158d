import { createMetrics } from '@keycast/service/metrics'
import { createRulingMetrics, exportRulingLevels } from './metrics.ts'

test('rulings are counted by the backend that gave them, from zero', async () => {
  const { registry, ...makers } = createMetrics({ service: 'fetcher' })
  const metrics = createRulingMetrics(makers, ['http://a', 'http://b'])
  exportRulingLevels(makers, {
    queued: () => 3,
    inFlight: () => 2,
    openBreakers: () => [{ labels: { origin: 'http://b', namespace: 'room' }, value: 1 }],
  })
  metrics.ruled('http://a', 'changed')
  metrics.questioned('memory')
  metrics.asked('http://a', 'admitted', 30)

  const lines = (await registry.metrics()).split('\n')
  for (const line of [
    'keycast_fetcher_rulings_total{origin="http://a",ruling="changed"} 1',
    'keycast_fetcher_rulings_total{origin="http://b",ruling="none"} 0',
    'keycast_fetcher_ruling_questions_total{met="memory"} 1',
    'keycast_fetcher_ruling_questions_total{met="asked"} 0',
    'keycast_fetcher_rulings_breaker_open{origin="http://b",namespace="room"} 1',
    'keycast_fetcher_rulings_waiting 3',
    'keycast_fetcher_rulings_in_flight 2',
    'keycast_fetcher_ruling_seconds_count 1',
  ]) {
    expect(lines).toContain(line)
  }
})
