import { holds } from './entity-tags.js'

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
  expect(holds(header, 'abc')).toBe(expected)
})

test('without the header nothing is held', () => {
  expect(holds(undefined, 'abc')).toBe(false)
})

test('a list of absurd length is not read', () => {
  expect(holds(`${'"x",'.repeat(10_000)}"abc"`, 'abc')).toBe(false)
})
