import { errorCodes } from '@keycast/protocol'
import { createMetrics } from '@keycast/service/metrics'
import { createFetcherMetrics, exportLevels } from './metrics.ts'
import { setup } from './test-support.ts'

test('what is counted comes out under its name, in base units', async () => {
  const metrics = createMetrics({ service: 'fetcher' })
  const counts = createFetcherMetrics(metrics, ['http://backend', 'http://other'])
  const { primary, watch, fail } = setup({ inFlightMax: 2 })
  exportLevels(metrics, {
    primary,
    workers: { stats: () => ({ ready: 2, credit: 500, cpuMs: 1_500, residentBytes: 3_000 }) },
    hub: { stats: () => ({ links: 3, dueKeys: 4, bytesOut: 5 }) },
    settings: { inFlightMax: 2, cacheBytesMax: 1_000 },
  })
  for (const id of [1, 2, 3, 4]) watch('a', `doc:${id}`)
  fail('doc:1', 'backend_error')
  counts.wanted('coalesced')
  counts.refused('capacity')
  counts.started('cold', 20)
  counts.ended('http://backend', { kind: 'current', status: 304, store: true }, 0, 30)
  counts.ended('http://backend', { kind: 'current', status: 200, store: true }, 0, 30)
  counts.ended('http://backend', { kind: 'failed', code: 'not_found', message: '' }, 0, 30)
  const content = {
    version: 'w',
    contentType: 'text/plain',
    format: 'text',
    status: 200,
    store: true,
  } as const
  counts.ended('http://backend', { kind: 'value', deltaFrom: 'v', ...content }, 0, 30)
  counts.ended('http://backend', { kind: 'value', deltaSkipped: 'gain', ...content }, 0, 30)
  counts.ended('http://backend', { kind: 'value', ...content }, 0, 30)
  counts.answered('value')
  counts.reissued()
  counts.workerLost('silent')
  counts.lateResult()

  const text = await metrics.registry.metrics()
  for (const line of [
    'keycast_fetcher_watched_keys{origin="http://backend",namespace="doc"} 4',
    'keycast_fetcher_cache_entries 4',
    'keycast_fetcher_cache_max_bytes 1000',
    'keycast_fetcher_fetches_waiting{lane="cold"} 1',
    'keycast_fetcher_fetches_waiting{lane="refresh"} 0',
    'keycast_fetcher_fetches_in_flight{lane="cold"} 2',
    'keycast_fetcher_fetches_in_flight_max 2',
    'keycast_fetcher_breaker_open{origin="http://backend",namespace="doc"} 0',
    'keycast_fetcher_failing_keys{origin="http://backend",namespace="doc"} 1',
    'keycast_fetcher_workers 2',
    'keycast_fetcher_worker_credit 500',
    'keycast_fetcher_workers_cpu_seconds_total 1.5',
    'keycast_fetcher_workers_resident_memory_bytes 3000',
    'keycast_fetcher_links 3',
    'keycast_fetcher_link_due_keys 4',
    'keycast_fetcher_link_unconfirmed_bytes 5',
    'keycast_fetcher_wants_total{met="coalesced"} 1',
    'keycast_fetcher_wants_total{met="plan"} 0',
    'keycast_fetcher_wants_refused_total{code="capacity"} 1',
    'keycast_fetcher_wants_refused_total{code="token_expired"} 0',
    'keycast_fetcher_fetch_wait_seconds_sum{lane="cold"} 0.02',
    'keycast_fetcher_fetch_seconds_count{origin="http://backend",outcome="not_modified"} 1',
    'keycast_fetcher_fetch_seconds_count{origin="http://backend",outcome="unchanged"} 1',
    'keycast_fetcher_fetch_seconds_sum{origin="http://backend",outcome="not_found"} 0.03',
    'keycast_fetcher_fetch_seconds_count{origin="http://other",outcome="not_found"} 0',
    'keycast_fetcher_fetched_bytes_total 0',
    'keycast_fetcher_deltas_total{result="made"} 1',
    'keycast_fetcher_deltas_total{result="gain"} 1',
    'keycast_fetcher_deltas_total{result="time"} 0',
    'keycast_fetcher_answers_total{type="value"} 1',
    'keycast_fetcher_leases_reissued_total 1',
    'keycast_fetcher_worker_restarts_total{reason="silent"} 1',
    'keycast_fetcher_worker_restarts_total{reason="exit"} 0',
    'keycast_fetcher_late_results_total 1',
  ]) {
    expect(text.split('\n')).toContain(line)
  }
})

test('every outcome of a fetch is exported before it happens, and one that nobody foresaw when it does', async () => {
  const metrics = createMetrics({ service: 'fetcher' })
  const counts = createFetcherMetrics(metrics, ['http://backend'])
  const outcomes = async () => {
    const lines = (await metrics.registry.metrics()).matchAll(
      /^keycast_fetcher_fetch_seconds_count\{.*outcome="(\w+)"/gm,
    )
    return new Set([...lines].map(([, outcome]) => outcome))
  }
  const atFirst = await outcomes()
  // The breaker's own: no fetch is made.
  const codes = Object.keys(errorCodes).filter(code => code.startsWith('backend_') && code !== 'backend_unavailable')
  for (const code of [...codes, 'not_found', 'too_large', 'invalid_content', 'fetcher_timeout']) {
    expect(atFirst).toContain(code)
  }
  counts.ended('http://new', { kind: 'failed', code: 'capacity', message: '' }, 0, 1)
  expect(await outcomes()).toEqual(atFirst.add('capacity'))
})
