// Made-up seconds and results for unit tests.
import type { Result } from './run/result.ts'
import type { SeriesSecond } from './scenarios/scenario.ts'

/** A second in which all is well, except for the given fields. */
export function secondOf(given: Partial<SeriesSecond> = {}): SeriesSecond {
  return {
    at: 1,
    phase: 'ramp',
    open: 100,
    connecting: 0,
    counts: { requested: 100, answered: 100, bodyBytes: 13_000_000, bytesIn: 13_001_400 },
    latency: { count: 100, meanMs: 2, p50Ms: 1, p90Ms: 3, p99Ms: 5, p999Ms: 8, maxMs: 9 },
    generator: { cpuMs: 50, busiest: 0.05, lateMsP99: 1, lateMsMax: 2, residentBytes: 6e7 },
    seconds: 1,
    freeBytes: 4e9,
    cpuBusyRatio: 0.2,
    services: [{ name: 'gateway', role: 'gateway', cpuMs: 60, residentBytes: 9e7, heapBytes: 2e7, majorGcs: 1 }],
    ...given,
  }
}

export function resultOf(given: Partial<Result> = {}): Result {
  return {
    format: 1,
    scenario: 'capacity',
    about: 'a scenario',
    label: 'Keycast',
    headline: '1,000 clients held',
    startedAt: '2026-01-01T10:00:00.000Z',
    endedBy: 'done',
    system: { kind: 'keycast', urls: ['ws://127.0.0.1:8080/ws'], watched: [] },
    settings: { clients: 1_000, start: 'keycast' },
    machine: { cpu: 'a processor', cores: 2, memoryBytes: 4e9, kernel: 'linux' },
    versions: { node: '20.18.1', v8: '11', keycast: 'abc', ws: '8', autocannon: '9' },
    figures: { clientsHeld: { label: 'Clients held', value: 1_000, unit: 'clients', better: 'higher' } },
    counts: { requested: 1 },
    sums: [{ text: 'requested 1 = answered 1', holds: true }],
    addsUp: true,
    reasons: {},
    limit: { limiter: 'neither', text: 'Neither was at its limit.', othersRatio: 0 },
    notes: [],
    tables: [],
    latency: undefined,
    rates: [{ count: 'answered', label: 'answers' }],
    series: [secondOf({ at: 1 }), secondOf({ at: 2 }), secondOf({ at: 3 })],
    ...given,
  }
}
