import { backoffMs } from './backoff.ts'

const bounds = { firstMs: 500, maxMs: 3_000 }

test('the wait doubles with each failure up to its bound, however many there are', () => {
  expect([1, 2, 3, 4, 5_000].map(failures => backoffMs(failures, bounds))).toEqual([500, 1_000, 2_000, 3_000, 3_000])
})

test('half of it may be left to chance: nobody comes again at once, and not all together', () => {
  expect([0, 0.5, 1].map(random => backoffMs(3, bounds, () => random))).toEqual([1_000, 1_500, 2_000])
})
