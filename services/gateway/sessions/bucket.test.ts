import { fullBucket, ratesOf, refill, waitMsFor } from './bucket.ts'

const rate = { perSecond: 100, max: 50 }

test('a bucket begins full, and never holds more', () => {
  const bucket = fullBucket(rate, 1_000)
  expect(refill(bucket, rate, 9_000)).toEqual({ left: 50, atMs: 9_000 })
})

test('debt is paid off as time goes by, however often one looks', () => {
  const bucket = fullBucket(rate, 0)
  bucket.left -= 60
  for (let nowMs = 1; nowMs <= 100; nowMs++) refill(bucket, rate, nowMs)
  expect(bucket.left).toBeCloseTo(0)
})

test('after the time it takes, what was missing has come in, and not before', () => {
  const bucket = fullBucket(rate, 0)
  bucket.left = 0
  const waitMs = waitMsFor(2.55, rate)
  expect(waitMs).toBe(26)
  expect(refill({ ...bucket }, rate, waitMs - 1).left).toBeLessThan(2.55)
  expect(refill({ ...bucket }, rate, waitMs).left).toBeGreaterThanOrEqual(2.55)
})

test('an account has the rates of its shares; as many keys as requests may be named at once, however few a session has', () => {
  const settings = { requestsPerSecondMax: 100, keysPerSessionMax: 50 }
  expect(ratesOf(settings).keys).toEqual({ perSecond: 100, max: 100 })
  expect(ratesOf({ ...settings, keysPerSessionMax: 1_000 }, 4)).toEqual({
    requests: { perSecond: 400, max: 400 },
    keys: { perSecond: 400, max: 4_000 },
  })
})
