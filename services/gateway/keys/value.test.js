import { answerStart } from '../encodings/json.js'
import { readFrames } from '../test-support.js'
import { createValue, jsonOf, valueBytes } from './value.js'

const answer = (/** @type {object} */ rest) =>
  /** @type {any} */ ({ key: 'tick:1', version: 'v', contentType: 'application/json', format: 'json', ...rest })

test('a small body is copied out of the block it came in, a large one is kept as it is', () => {
  const block = Buffer.alloc(100_000, '1')
  const small = createValue(answer({ body: block.subarray(0, 100) }))
  expect(small.body.buffer).not.toBe(block.buffer)
  expect(small.body.buffer.byteLength).toBe(100)
  const large = createValue(answer({ body: block.subarray(0, 50_000) }))
  expect(large.body.buffer).toBe(block.buffer)
})

test('the frame is built once, and a JSON body then lives in it', () => {
  const body = Buffer.from(`"${'ü'.repeat(20_000)}"`)
  const value = createValue(answer({ body }))
  const encoded = jsonOf(value)
  expect(jsonOf(value)).toBe(encoded)
  expect(value.body.equals(body)).toBe(true)
  expect(value.body.buffer).toBe(encoded.frame.buffer)
})

test.each([
  ['json', '{"a":[1,"ü"]}', { data: { a: [1, 'ü'] } }],
  ['text', 'a "quoted"\n\u0000 ü', { contentType: 'text/x', text: 'a "quoted"\n\u0000 ü' }],
  ['base64', 'aß', { contentType: 'text/x', base64: 'YcOf' }],
])('a %s body is sent as its format says, alone and after the head of an answer', (format, text, expected) => {
  const contentType = format === 'json' ? 'application/json' : 'text/x'
  const value = createValue(answer({ format, contentType, body: Buffer.from(text) }))
  const encoded = jsonOf(value)
  const fields = { type: 'value', key: 'tick:1', version: 'v', ...expected }
  expect(readFrames(encoded.frame)).toEqual([fields])
  expect(readFrames(Buffer.concat([answerStart(value, encoded, 'x'), encoded.rest]))).toEqual([{ ...fields, id: 'x' }])
  expect(value.body.toString()).toBe(text)
})

test('a value counts as what it takes once a JSON session has wanted it', () => {
  const body = Buffer.alloc(3_000)
  expect(valueBytes(createValue(answer({ body })))).toBe(3_000)
  expect(valueBytes(createValue(answer({ body, format: 'base64' })))).toBe(7_000)
})
