import { isNotModified } from './conditional.ts'

const changedAtMs = Date.UTC(1994, 10, 6, 8, 49, 37, 500)
const document = { etag: '"abc"', changedAtMs }

test.each([
  ['"abc"', true],
  ['W/"abc"', true],
  ['"x", "abc"', true],
  ['"x,y",W/"abc"', true],
  ['*', true],
  ['"ab"', false],
  ['abc', false],
  ['"x, abc"', false],
  ['', false],
])('If-None-Match: %s', (held, expected) => {
  expect(isNotModified({ 'if-none-match': held }, document)).toBe(expected)
})

test.each([
  ['the second of the change', 'Sun, 06 Nov 1994 08:49:37 GMT', true],
  ['a later one', 'Sun, 06 Nov 1994 08:49:38 GMT', true],
  ['an earlier one', 'Sun, 06 Nov 1994 08:49:36 GMT', false],
  ['RFC 850', 'Sunday, 06-Nov-94 08:49:37 GMT', true],
  ['asctime', 'Sun Nov  6 08:49:37 1994', true],
  ['asctime, earlier', 'Sun Nov  6 08:49:36 1994', false],
  ['no date', 'yesterday', false],
])('If-Modified-Since: %s', (_, since, expected) => {
  expect(isNotModified({ 'if-modified-since': since }, document)).toBe(expected)
})

test('If-None-Match wins over a date', () => {
  const since = 'Sun, 06 Nov 1994 08:49:38 GMT'
  expect(isNotModified({ 'if-none-match': '"other"', 'if-modified-since': since }, document)).toBe(false)
})

test('an unconditional request is answered in full', () => {
  expect(isNotModified({}, document)).toBe(false)
})
