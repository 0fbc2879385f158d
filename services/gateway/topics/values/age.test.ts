import { askedAtOf, endRefreshes, latestAskedAtOf, planOf } from './age.ts'

/** Asked at 1,000; refreshed at 10,000 and each 5,000 after that. */
function refreshed(untilMs: number) {
  const confirmations = { untilMs }
  return { confirmations, entry: { askedAtMs: 1_000, refreshes: { confirmations, atMs: 10_000, everyMs: 5_000 } } }
}

test.each([
  [Number.NEGATIVE_INFINITY, 1_000],
  [9_999, 1_000],
  [10_000, 10_000],
  [14_999, 10_000],
  [31_000, 30_000],
])('with all refreshes over up to %d the backend was asked at %d', (untilMs, askedAtMs) => {
  expect(askedAtOf(refreshed(untilMs).entry)).toBe(askedAtMs)
})

test('a key that is confirmed one by one has the time it was told', () => {
  expect(askedAtOf({ askedAtMs: 1_000, refreshes: undefined })).toBe(1_000)
  expect(latestAskedAtOf({ askedAtMs: 1_000, refreshes: undefined })).toBe(1_000)
})

test('what may have been asked later is no older for another node', () => {
  expect(latestAskedAtOf(refreshed(12_345).entry)).toBe(12_345)
})

test.each([
  [Number.NEGATIVE_INFINITY, 9_000, 1_000, 8_000],
  [9_999, 9_999, 1, 8_999],
  [10_000, 10_500, 4_500, 500],
  [12_000, 14_000, 1_000, 4_000],
  [12_000, 16_000, 0, 6_000],
])(
  'confirmed up to %d, at %d another node may wait for %d ms: the backend was asked %d ms ago',
  (untilMs, nowMs, inMs, askedAgoMs) => {
    const { entry } = refreshed(untilMs)

    const plan = planOf({ ...entry, store: true, failure: undefined, maxAgeMs: 700 }, nowMs)
    expect(plan).toEqual({ inMs, maxAgeMs: 700, askedAgoMs })
  },
)

test('what may not be stored, fails, or is confirmed one by one, another node asks for at once', () => {
  const { entry } = refreshed(12_000)
  const failure = { problem: { code: 'backend_error', retryAfterMs: 1 }, atMs: 1, isLocal: false } as const
  const kept = { ...entry, store: true, failure: undefined, maxAgeMs: 700 }

  expect(planOf({ ...kept, store: false }, 13_000)).toBeUndefined()
  expect(planOf({ ...kept, failure }, 13_000)).toBeUndefined()
  expect(planOf({ ...kept, refreshes: undefined }, 13_000)).toBeUndefined()
})

test('what was confirmed stays when nothing more is', () => {
  const { entry, confirmations } = refreshed(16_000)

  endRefreshes(entry)
  confirmations.untilMs = 99_000

  expect([askedAtOf(entry), entry.refreshes]).toEqual([15_000, undefined])
})
