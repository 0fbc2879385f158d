import { matchesAny } from './entity-tags.ts'

test.each([
  ['"abc"', true],
  ['W/"abc"', true],
  ['"x", "abc"', true],
  ['"x",W/"abc" , "y"', true],
  ['*', true],
  [' * ', true],
  ['"abcd"', false],
  ['abc', false],
  ['', false],
  ['"x, abc"', false],
])('If-None-Match: %s names the tag abc: %s', (header, expected) => {
  expect(matchesAny(header, 'abc')).toBe(expected)
})

test('without the header nothing is held', () => {
  expect(matchesAny(undefined, 'abc')).toBe(false)
})

test('a list of absurd length is not read', () => {
  expect(matchesAny(`${'"x",'.repeat(10_000)}"abc"`, 'abc')).toBe(false)
})
