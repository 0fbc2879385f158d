import { chooseCoding } from './accept-encoding.ts'

test.each([
  [undefined, undefined],
  ['', undefined],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip', 'gzip'],
  ['GZIP;Q=0.5', 'gzip'],
  ['deflate, zstd', undefined],
  ['*', 'br'],
  ['br;q=0, *', 'gzip'],
  ['br;q=0, *;q=0.3', 'gzip'],
  ['gzip;q=0', undefined],
  ['*;q=0', undefined],
  ['br;q=0.5, gzip;q=0.8', 'gzip'],
  ['br ; q=0.50 ,\tgzip ; q=0.5', 'br'],
  ['identity, gzip;q=0.9', undefined],
  ['identity, gzip', 'gzip'],
  ['identity;q=0.5, gzip;q=0.9', 'gzip'],
  ['identity;q=0', undefined],
  ['gzip;q=2, br;q=x', undefined],
  ['gzip;level=9', undefined],
] as const)('Accept-Encoding: %s is answered in %s', (header, coding) => {
  expect(chooseCoding(header)).toBe(coding)
})
