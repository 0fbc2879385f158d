import { excerpt } from './excerpt.ts'

const LEVELS = 100_000
const deepList = JSON.parse('['.repeat(LEVELS) + ']'.repeat(LEVELS))
const deepObject = JSON.parse(`${'{"a":'.repeat(LEVELS)}1${'}'.repeat(LEVELS)}`)

test.each([
  ['steal', '"steal"'],
  ['', '""'],
  ['a "quoted"\nword', '"a \\"quoted\\"\\nword"'],
  [7, '7'],
  [-0.5, '-0.5'],
  [JSON.parse('1e999'), 'Infinity'],
  [true, 'true'],
  [null, 'null'],
  [undefined, 'undefined'],
  [[], '[]'],
  [[1, 2], '[…]'],
  [{}, '{…}'],
  [JSON.parse('{"__proto__":{"x":1}}'), '{…}'],
  [Object.create(null), '{…}'],
])('%j is shown', (thing, shown) => {
  expect(excerpt(thing)).toBe(shown)
})

test('nothing is read of a thing that is nested 100,000 levels deep', () => {
  expect(excerpt(deepList)).toBe('[…]')
  expect(excerpt(deepObject)).toBe('{…}')
})

test('no function of the thing is called', () => {
  const trap = () => {
    throw new Error('called')
  }
  expect(excerpt({ toJSON: trap, toString: trap, valueOf: trap, [Symbol.toPrimitive]: trap })).toBe('{…}')
  expect(excerpt(JSON.parse('{"toJSON":1,"toString":2}'))).toBe('{…}')
})

test('a text of 10 MB is cut before it is quoted', () => {
  const text = 'x'.repeat(10 * 2 ** 20)
  const stringify = jest.spyOn(JSON, 'stringify')
  const shown = excerpt(text)
  const [[quoted]] = stringify.mock.calls
  stringify.mockRestore()
  expect(shown).toBe(`"${'x'.repeat(59)}…"`)
  expect(String(quoted).length).toBeLessThan(100)
})

test.each([
  ['control characters, six times as long when escaped', '\u0000'.repeat(1_000)],
  ['lone surrogates', '\ud800'.repeat(1_000)],
  ['pairs of surrogates', '😀'.repeat(1_000)],
  ['pairs that begin one later', `x${'😀'.repeat(1_000)}`],
  ['a text that fits before it is escaped', '"'.repeat(59)],
])('an excerpt is short and well-formed: %s', (_, text) => {
  const shown = excerpt(text)
  expect(shown.length).toBeLessThanOrEqual(64)
  expect(shown.isWellFormed()).toBe(true)
  expect(shown).toMatch(/^".*…"$/)
})

test('a text is shown whole up to 60 characters', () => {
  expect(excerpt('x'.repeat(60))).toBe(`"${'x'.repeat(60)}"`)
  expect(excerpt('x'.repeat(61))).toBe(`"${'x'.repeat(59)}…"`)
})
