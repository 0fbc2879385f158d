import { hashOfKeys, KEYS_MAX, keysOfHash, readKeys } from './key-list.js'

test('keys may be separated by spaces, commas, semicolons and lines, and be quoted as in a program', () => {
  expect(readKeys(' a:1, b:2;c:3\n"d:4" \'e:5\'').keys).toEqual(['a:1', 'b:2', 'c:3', 'd:4', 'e:5'])
})

test('a key typed twice is one key', () => {
  expect(readKeys('a:1 a:1').keys).toEqual(['a:1'])
})

test('the first text that is no key is named with the reason', () => {
  const { keys, problem } = readKeys('a:1 Bad:2 worse')
  expect(keys).toEqual(['a:1'])
  expect(problem).toMatch(/“Bad:2”: a namespace is/)
})

test('nothing typed is no problem', () => {
  expect(readKeys('  ,')).toEqual({ keys: [], problem: undefined })
})

test('keys go into the address and come back from it', () => {
  const keys = ['conversation:1', 'file:a/b.txt']
  expect(keysOfHash(hashOfKeys(keys))).toEqual(keys)
  expect(hashOfKeys([])).toBe('')
})

test('an address that was escaped or mangled gives the keys that can still be read', () => {
  expect(keysOfHash('#conversation%3A1%2Ctext:1')).toEqual(['conversation:1', 'text:1'])
  expect(keysOfHash('#a:1,%zz,b:2')).toEqual(['a:1', 'b:2'])
})

test('an address cannot make the page draw thousands of cards', () => {
  const keys = Array.from({ length: 1_000 }, (_, index) => `a:${index}`)
  expect(keysOfHash(hashOfKeys(keys))).toHaveLength(KEYS_MAX)
})
