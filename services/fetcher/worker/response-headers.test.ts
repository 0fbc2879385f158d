import { confirmedFreshnessOf, freshnessOf, validatorsOf } from './response-headers.ts'

const now = Date.UTC(2026, 0, 1)

/** @param ms relative to `now` */
const date = (ms: number) => new Date(now + ms).toUTCString()

test.each([
  [undefined, { store: true, maxAgeMs: undefined }],
  ['', { store: true, maxAgeMs: undefined }],
  ['public', { store: true, maxAgeMs: undefined }],
  ['max-age=60', { store: true, maxAgeMs: 60_000 }],
  ['Public, MAX-AGE=60', { store: true, maxAgeMs: 60_000 }],
  ['max-age="60"', { store: true, maxAgeMs: 60_000 }],
  ['max-age=60, s-maxage=5', { store: true, maxAgeMs: 5_000 }],
  ['max-age=60, max-age=5', { store: true, maxAgeMs: 60_000 }],
  ['max-age=0, must-revalidate', { store: true, maxAgeMs: 0 }],
  ['max-age=99999999999999999999', { store: true, maxAgeMs: 2 ** 31 * 1_000 }],
  ['max-age=soon', { store: true, maxAgeMs: 0 }],
  ['max-age=-1', { store: true, maxAgeMs: 0 }],
  ['max-age', { store: true, maxAgeMs: 0 }],
  ['no-cache', { store: true, maxAgeMs: 0 }],
  ['no-cache, max-age=60', { store: true, maxAgeMs: 0 }],
  ['no-store', { store: false, maxAgeMs: undefined }],
  ['private, max-age=60', { store: false, maxAgeMs: 60_000 }],
  ['private="set-cookie"', { store: false, maxAgeMs: undefined }],
  ['extension="no-store, max-age=1"', { store: true, maxAgeMs: undefined }],
  ['extension="a\\", no-store"', { store: true, maxAgeMs: undefined }],
  ['extension="no-store', { store: false, maxAgeMs: undefined }],
])('Cache-Control: %s', (cacheControl, expected) => {
  expect(freshnessOf({ 'cache-control': cacheControl }, now)).toEqual(expected)
})

test.each([
  ['*', { store: false, maxAgeMs: 0 }],
  ['accept, *', { store: false, maxAgeMs: 0 }],
  ['accept-encoding, Authorization, cookie', { store: true, maxAgeMs: 60_000 }],
])('Vary: %s', (vary, expected) => {
  expect(freshnessOf({ 'cache-control': 'max-age=60', vary }, now)).toEqual(expected)
})

test.each([
  ['20', 40_000],
  ['60', 0],
  ['90', 0],
  ['-5', 60_000],
  ['old', 60_000],
])('Age: %s is taken off a lifetime of a minute', (age, maxAgeMs) => {
  expect(freshnessOf({ 'cache-control': 'max-age=60', age }, now).maxAgeMs).toBe(maxAgeMs)
})

test('an Age alone says nothing of how long a value may be kept', () => {
  expect(freshnessOf({ age: '20' }, now)).toEqual({ store: true, maxAgeMs: undefined })
})

test.each([
  ['0', 0],
  ['-1', 0],
  ['soon', 0],
  ['', 0],
  [date(-1_000), 0],
  [date(30_000), 30_000],
])('Expires: %s leaves so much time; what is no date has expired', (expires, maxAgeMs) => {
  expect(freshnessOf({ expires }, now)).toEqual({ store: true, maxAgeMs })
})

test('Expires is held against Date, less Age; max-age comes before it', () => {
  const headers = { expires: date(3_600_000), date: date(3_590_000), age: '4' }
  expect(freshnessOf(headers, now).maxAgeMs).toBe(6_000)
  expect(freshnessOf({ expires: '0', 'cache-control': 'max-age=60' }, now).maxAgeMs).toBe(60_000)
  expect(freshnessOf({ expires: '0', 'cache-control': 'public' }, now).maxAgeMs).toBe(0)
})

test('a 304 says something new of how long to keep a value only where it has such fields', () => {
  expect(confirmedFreshnessOf({}, now)).toEqual({ store: undefined, maxAgeMs: undefined })
  expect(confirmedFreshnessOf({ expires: '0' }, now)).toEqual({ store: undefined, maxAgeMs: 0 })
  expect(confirmedFreshnessOf({ 'cache-control': 'public' }, now)).toEqual({ store: true, maxAgeMs: undefined })
})

test('a Cache-Control made to be slow to read is read at once', () => {
  const startedAt = performance.now()
  freshnessOf({ 'cache-control': `a="${'\\"'.repeat(8_000)}` }, now)
  freshnessOf({ 'cache-control': `a ${' '.repeat(16_000)}` }, now)
  expect(performance.now() - startedAt).toBeLessThan(1_000)
})

test.each(['*', ''])('an entity tag that would mean any version is not kept: "%s"', etag => {
  expect(validatorsOf({ etag }, now).etag).toBeUndefined()
})

test.each(['"abc"', 'W/"abc"', 'without quotes'])('the entity tag %s is kept as it came', etag => {
  expect(validatorsOf({ etag }, now)).toEqual({ etag, lastModified: undefined })
})

test('an entity tag of great length is not kept', () => {
  expect(validatorsOf({ etag: `"${'x'.repeat(2_000)}"` }, now).etag).toBeUndefined()
})

test.each([
  [-2_000, 0, true],
  [-1_000, 0, false],
  [0, 0, false],
  [60_000, 0, false],
  [58_000, 60_000, true],
  [59_000, 60_000, false],
])('Last-Modified at %i ms with Date at %i ms is a validator: %s', (modifiedMs, dateMs, kept) => {
  const lastModified = date(modifiedMs)
  expect(validatorsOf({ 'last-modified': lastModified, date: date(dateMs) }, 0).lastModified).toBe(
    kept ? lastModified : undefined,
  )
})

test('without a Date the own clock decides whether Last-Modified lies far enough back', () => {
  const lastModified = date(-2_000)
  expect(validatorsOf({ 'last-modified': lastModified }, now).lastModified).toBe(lastModified)
  expect(validatorsOf({ 'last-modified': lastModified, date: 'today' }, now - 1_000).lastModified).toBeUndefined()
})

test('a Last-Modified that is no date is no validator', () => {
  expect(validatorsOf({ 'last-modified': '0' }, now).lastModified).toBeUndefined()
})
