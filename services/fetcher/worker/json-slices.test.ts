import { elementsOf, isList, pointed } from './json-slices.ts'

const at = (json: string, pointer: string) => pointed(Buffer.from(json), pointer)?.toString()

// RFC 6901 section 5.
const example =
  '{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\\\j": 5, "k\\"l": 6, " ": 7, "m~n": 8}'

test.each([
  ['', example],
  ['/foo', '["bar", "baz"]'],
  ['/foo/0', '"bar"'],
  ['/', '0'],
  ['/a~1b', '1'],
  ['/c%d', '2'],
  ['/e^f', '3'],
  ['/g|h', '4'],
  ['/i\\j', '5'],
  ['/k"l', '6'],
  ['/ ', '7'],
  ['/m~0n', '8'],
])('%j points where RFC 6901 says', (pointer, value) => {
  expect(at(example, pointer)).toBe(value)
})

test.each(['/bar', '/foo/2', '/foo/-', '/foo/01', '/foo/0/1', '//1'])('%j points at nothing', pointer => {
  expect(at(example, pointer)).toBeUndefined()
})

test('values are the bytes that they were, without the space around them', () => {
  const json = ' { "a" :\t[ { "id" : 12345678901234567890 , "é":"}]\\"\\\\" } ,\n -1.50e+2 , null,"\\u00e9" ] } '
  expect(at(json, '')).toBe(json.trim())
  const list = pointed(Buffer.from(json), '/a') as Buffer
  expect([...elementsOf(list)].map(String)).toEqual([
    '{ "id" : 12345678901234567890 , "é":"}]\\"\\\\" }',
    '-1.50e+2',
    'null',
    '"\\u00e9"',
  ])
  expect(at(json, '/a/0/id')).toBe('12345678901234567890')
  expect(at(json, '/a/0/é')).toBe('"}]\\"\\\\"')
})

test('a name may be written with escapes', () => {
  expect(at('{"\\u0069d":[7]}', '/id/0')).toBe('7')
})

test('an empty list has no elements, and what is no list is told from one', () => {
  expect([...elementsOf(Buffer.from('[ ]'))]).toEqual([])
  expect(isList(Buffer.from('{}'))).toBe(false)
})

test('the parts of any JSON are those that a parser finds', () => {
  const any = { list: [[], [[]], {}, '', ' ]', '"', '\\', -0.5, true, { a: { b: [1, 2, { c: null }] } }], other: '{' }
  for (const json of [JSON.stringify(any), JSON.stringify(any, null, 2)]) {
    const found = [...elementsOf(pointed(Buffer.from(json), '/list') as Buffer)].map(each => JSON.parse(String(each)))
    expect(found).toEqual(any.list)
    expect(JSON.parse(at(json, '/list/9/a/b/2') ?? '')).toEqual({ c: null })
    expect(at(json, '/other')).toBe('"{"')
  }
})
