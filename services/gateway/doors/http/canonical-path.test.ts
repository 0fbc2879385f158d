import fc from 'fast-check'
import { canonicalPath } from './canonical-path.ts'

test.each([
  ['/v1/values/tick:1', '/v1/values/tick:1'],
  ['/%76%31/values/%74ick:1', '/v1/values/tick:1'],
  ['/v1/wait/a:%41%5a%61%7A%30%39%2d%2E%5f%7e', '/v1/wait/a:AZaz09-._~'],
  // Not the same: a key may hold what ends a path, and is decoded once.
  ['/v1/values/a:%2F%3F%25%76%23', '/v1/values/a:%2F%3F%25v%23'],
  ['/v1/values/a:%2576', '/v1/values/a:%2576'],
  ['/v1/values/a:%zz%7', '/v1/values/a:%zz%7'],
  ['/%76?after=%78', '/v?after=%78'],
  ['http://example.com:8080/%76/a?at=http://b/', '/v/a?at=http://b/'],
  ['HTTPS://example.com?after=1', '/?after=1'],
])('%s is %s', (url, canonical) => {
  expect(canonicalPath(url)).toBe(canonical)
})

test('a path means what it meant', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(127)), codes => {
      const encoded = codes.map(code => `%${code.toString(16).padStart(2, '0')}`).join('')
      expect(decodeURIComponent(canonicalPath(encoded))).toBe(decodeURIComponent(encoded))
    }),
  )
})
