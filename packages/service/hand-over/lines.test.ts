import { linesOf, readLine } from './lines.ts'

const read = (text: string) => {
  const line = readLine({ number: 1, text })
  return 'problem' in line ? line.problem : { ...line, bytes: line.bytes && String(line.bytes) }
}

test('lines are counted as an editor does, and empty ones are left out', () => {
  expect(linesOf(Buffer.from('{"a":1}\r\n\n \t\r\n  {"b":"ü"}\n'), 2)).toEqual([
    { number: 1, text: '{"a":1}\r' },
    { number: 4, text: '  {"b":"ü"}' },
  ])
  expect(linesOf(Buffer.from('1'), 2)).toEqual([{ number: 1, text: '1' }])
  expect(linesOf(Buffer.from([0xff]), 2)).toBeUndefined()
})

test('of more lines than may be sent one more is read', () => {
  expect(linesOf(Buffer.from('1\n'.repeat(5)), 2)).toHaveLength(3)
})

test('a value is taken as it is written', () => {
  expect(read('{"key":"a:1","value":{"n": 1.0},"order":7}')).toEqual({
    number: 1,
    key: 'a:1',
    bytes: '{"n": 1.0}',
    contentType: 'application/json',
    isJson: true,
    rank: 7,
  })
  expect(read('{"key":"a:1","value":null}')).toMatchObject({ bytes: 'null', rank: undefined })
  expect(read('{"key":"a:1","value":"x","contentType":"application/geo+json"}')).toMatchObject({ bytes: '"x"' })
})

test('text is what the string says', () => {
  expect(read('{"key":"a:1","value":"x\\n","contentType":"text/plain"}')).toMatchObject({
    bytes: 'x\n',
    contentType: 'text/plain',
  })
})

test('a key is removed', () => {
  expect(read('{"key":"a:1","delete":true}')).toMatchObject({ key: 'a:1', bytes: undefined })
})

test.each([
  ['{', 'it is no JSON object'],
  ['[]', 'it is no JSON object'],
  ['{}', 'key must be a text'],
  ['{"key":"a:1"}', 'it must have "value" or "delete":true'],
  ['{"key":"a:1","value":1,"delete":true}', 'it must have "value" or "delete":true'],
  ['{"key":"a:1","delete":false}', 'delete must be true'],
  ['{"key":"a:1","value":1,"order":-1}', 'order must be a whole number from 0'],
  ['{"key":"a:1","value":1,"order":1.5}', 'order must be a whole number from 0'],
  ['{"key":"a:1","value":1,"contentType":7}', 'contentType must be a text'],
  ['{"key":"a:1","value":1,"rank":7}', 'it has an unknown field "rank"'],
  [
    '{"key":"a:1","value":1,"contentType":"text/plain"}',
    'a value of "text/plain" must be a text: hand other bytes over by PUT',
  ],
])('%s is refused', (text, problem) => {
  expect(read(text)).toBe(problem)
})
