import { changesBetween, differenceOf, entriesOf, inline, lineChanges, same } from './changes.js'

/** @param {unknown} before @param {unknown} after */
const pathsOf = (before, after) => changesBetween(before, after).map(({ kind, path }) => `${kind} ${path}`)

test('equal values have no changes, whatever the order of their fields', () => {
  expect(same({ a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1 })).toBe(true)
  expect(pathsOf({ a: 1, b: 2 }, { b: 2, a: 1 })).toEqual([])
})

test('the deepest difference is named by its path', () => {
  const before = { title: 'x', list: [{ n: 1 }, { n: 2 }] }
  const after = { title: 'x', list: [{ n: 1 }, { n: 3 }] }
  expect(changesBetween(before, after)).toEqual([{ path: 'list[1].n', kind: 'changed', before: 2, after: 3 }])
})

test('a list whose items carry an id and which moves on has two changes', () => {
  const item = (/** @type {number} */ id) => ({ id, text: `message ${id}` })
  expect(pathsOf({ messages: [1, 2, 3].map(item) }, { messages: [2, 3, 4].map(item) })).toEqual([
    'added messages[2]',
    'removed messages[0]',
  ])
})

test('items without an id, or with one id twice, are known by their place', () => {
  expect(entriesOf([{ id: 1 }, { id: 1 }]).map(({ id }) => id)).toEqual(['0', '1'])
  expect(pathsOf(['a', 'b'], ['a', 'c', 'd'])).toEqual(['changed [1]', 'added [2]'])
})

test('fields come and go, and odd names are quoted', () => {
  expect(pathsOf({ 'a-b': 1, gone: 1 }, { 'a-b': 2, fresh: 1 })).toEqual([
    'changed ["a-b"]',
    'added fresh',
    'removed gone',
  ])
})

test('a value that became another kind of value is one change', () => {
  expect(pathsOf({ a: [1] }, { a: { 0: 1 } })).toEqual(['changed a'])
  expect(pathsOf(null, [1])).toEqual(['changed '])
})

test('absurd nesting neither overflows the stack nor hides a difference', () => {
  const nest = (/** @type {unknown} */ core) => {
    for (let depth = 0; depth < 5_000; depth += 1) core = [core]
    return core
  }
  expect(same(nest(1), nest(1))).toBe(true)
  expect(changesBetween(nest(1), nest(2))).toHaveLength(1)
})

test('a value that is new throughout is not listed to the end', () => {
  const list = (/** @type {number} */ offset) => Array.from({ length: 5_000 }, (_, index) => index + offset)
  expect(changesBetween(list(0), list(1))).toHaveLength(1_000)
})

test('two texts differ between what they begin and end with', () => {
  expect(differenceOf('one two three', 'one 2 three')).toEqual({ start: 4, beforeEnd: 7, afterEnd: 5 })
  expect(differenceOf('aa', 'aaa')).toEqual({ start: 2, beforeEnd: 2, afterEnd: 3 })
  expect(differenceOf('same', 'same')).toEqual({ start: 4, beforeEnd: 4, afterEnd: 4 })
})

test('a text that moves on by a line has lost one and gained one', () => {
  expect(lineChanges(['revision 1', 'a', 'b', 'c'], ['revision 2', 'b', 'c', 'd'])).toEqual([
    { path: 'line 1', kind: 'changed', before: 'revision 1', after: 'revision 2' },
    { path: 'line 2', kind: 'removed', before: 'a' },
    { path: 'line 4', kind: 'added', after: 'd' },
  ])
  expect(lineChanges(['a', 'b'], ['b', 'a'])).toEqual([])
})

test('a value is written on one line and cut', () => {
  expect(inline({ a: 'x', b: [1, null], c: {} }, 60)).toBe('{ a: "x", b: [1, null], c: {  } }')
  expect(inline('x'.repeat(1_000_000), 10)).toHaveLength(10)
  expect(
    inline(
      Array.from({ length: 1_000_000 }, () => 1),
      10,
    ),
  ).toHaveLength(10)
})
