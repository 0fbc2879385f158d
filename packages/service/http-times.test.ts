import { readHttpDate, retryAfterMsOf } from './http-times.ts'

const now = Date.UTC(2026, 0, 1)

/** @param ms relative to `now` */
const date = (ms: number) => new Date(now + ms).toUTCString()

test.each([
  [{}, undefined],
  [{ 'retry-after': '120' }, 120_000],
  [{ 'retry-after': '0' }, 0],
  [{ 'retry-after': '99999999999' }, 2 ** 31 * 1_000],
  [{ 'retry-after': '-1' }, undefined],
  [{ 'retry-after': '1.5' }, undefined],
  [{ 'retry-after': 'later' }, undefined],
  [{ 'retry-after': date(30_000) }, 30_000],
  [{ 'retry-after': date(-30_000) }, 0],
  [{ 'retry-after': date(30_000), date: date(20_000) }, 10_000],
])('%j: come back after %s ms', (headers, expected) => {
  expect(retryAfterMsOf(headers, now)).toBe(expected)
})

test.each(['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])(
  '%s is read, in whatever zone this runs',
  text => {
    expect(readHttpDate(text)).toBe(Date.UTC(1994, 10, 6, 8, 49, 37))
  },
)

test.each([
  '',
  '0',
  '-1',
  '1994',
  'yesterday',
  'Sun, 99 Nov 1994 08:49:37 GMT',
  `Sun, 06 Nov 1994 08:49:37 GMT (${'x'.repeat(99)})`,
])('%j is no date', text => {
  expect(readHttpDate(text)).toBeNaN()
})
