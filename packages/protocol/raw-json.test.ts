import { rawMember } from './raw-json.ts'

test.each([
  ['{"data":1}', '1', 0],
  ['{"data": 1.0 }', '1.0', 0],
  ['{"data":-1e-3}', '-1e-3', 0],
  ['{"data":null,"b":2}', 'null', 0],
  ['{"data":"a\\"b\\\\"}', '"a\\"b\\\\"', 0],
  ['{"a":"\\\\","data":{}}', '{}', 1],
  ['{"data":[{"a":["]"]}]}', '[{"a":["]"]}]', 3],
  ['{"a":{"data":1},"data":"x"}', '"x"', 0],
  ['{"data":1,"data":[2]}', '[2]', 1],
  ['{"d\\u0061ta":3}', '3', 0],
  [' {\n"a" :\t"}" ,\r"data"\n:\n{ "a" : 1 }\n} ', '{ "a" : 1 }', 1],
  ['{"data":12345678901234567890}', '12345678901234567890', 0],
  ['{"data":"ä😀"}', '"ä😀"', 0],
])('of %j the member is %j', (text, expected, depth) => {
  expect(rawMember(text, 'data')).toEqual({ text: expected, depth })
})

test.each(['{}', '{"a":1}', '{"a":{"data":1}}', '{"a":"\\"data\\":1"}'])('%j has none', text => {
  expect(rawMember(text, 'data')).toBeUndefined()
})

test('whatever JSON.stringify writes is found again, among other members and however it is spaced', () => {
  const values = [0, -1.5, 'x"\\', '', [], {}, [[1], { a: [] }], { data: { data: [] } }, null, true, '\u2028']
  for (const value of values) {
    for (const space of [0, 1]) {
      const text = JSON.stringify({ before: values, data: value, after: value }, null, space)
      expect(JSON.parse(rawMember(text, 'data')?.text ?? '')).toEqual(value)
    }
  }
})
