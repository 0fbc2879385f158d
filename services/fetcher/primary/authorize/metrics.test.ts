import { createMetrics } from '@keycast/service/metrics'
import { createAuthorizeMetrics, exportAuthorizeLevels } from './metrics.ts'

test('answers are counted by the backend that gave them, from zero', async () => {
  const { registry, ...makers } = createMetrics({ service: 'fetcher' })
  const metrics = createAuthorizeMetrics(makers, ['http://a', 'http://b'])
  exportAuthorizeLevels(makers, {
    queued: () => 3,
    inFlight: () => 2,
    openBreakers: () => [{ labels: { origin: 'http://b', namespace: 'doc' }, value: 1 }],
  })
  metrics.asked('http://a', 'failed', 30)
  metrics.questioned('memory')

  const lines = (await registry.metrics()).split('\n')
  for (const line of [
    'keycast_fetcher_authorize_answers_total{origin="http://a",verdict="failed"} 1',
    'keycast_fetcher_authorize_answers_total{origin="http://a",verdict="admitted"} 0',
    'keycast_fetcher_authorize_answers_total{origin="http://b",verdict="failed"} 0',
    'keycast_fetcher_authorize_questions_total{met="memory"} 1',
    'keycast_fetcher_authorize_questions_total{met="coalesced"} 0',
    'keycast_fetcher_authorize_breaker_open{origin="http://b",namespace="doc"} 1',
    'keycast_fetcher_authorize_waiting 3',
    'keycast_fetcher_authorize_in_flight 2',
    'keycast_fetcher_authorize_seconds_count 1',
  ]) {
    expect(lines).toContain(line)
  }
})
