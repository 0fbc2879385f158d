import { readHttpDate } from './http-date.ts'

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
