import { readFrames } from '../test-support.ts'
import { createValue, valueBytes } from '../topics/values/value.ts'
import { plainEncodings } from './index.ts'

const [json] = plainEncodings

const answer = (rest: object) =>
  ({ key: 'tick:1', version: 'v', contentType: 'application/json', format: 'json', ...rest }) as any

function piecesOf(add: (pieces: Buffer[]) => number) {
  const pieces: Buffer[] = []
  expect(add(pieces)).toBe(Buffer.concat(pieces).length)
  return pieces
}

test('the frame is built once, and a JSON body is then part of it', () => {
  const body = Buffer.from(`"${'ü'.repeat(20_000)}"`)
  const value = createValue(answer({ body }))
  const [frame] = piecesOf(pieces => json.addValue(value, pieces))
  expect(piecesOf(pieces => json.addValue(value, pieces))[0]).toBe(frame)
  expect(value.body.equals(body)).toBe(true)
  expect(value.body.buffer).toBe(frame.buffer)
})

test.each([
  ['json', '{"a":[1,"ü"]}', { data: { a: [1, 'ü'] } }],
  ['text', 'a "quoted"\n\u0000 ü', { contentType: 'text/x', text: 'a "quoted"\n\u0000 ü' }],
  ['base64', 'aß', { contentType: 'text/x', base64: 'YcOf' }],
])('a %s body is sent as its format says, alone and after the head of an answer', (format, text, expected) => {
  const contentType = format === 'json' ? 'application/json' : 'text/x'
  const value = createValue(answer({ format, contentType, body: Buffer.from(text) }))
  const fields = { type: 'value', key: 'tick:1', version: 'v', ...expected }
  const alone = piecesOf(pieces => json.addValue(value, pieces))
  expect(readFrames(Buffer.concat(alone))).toEqual([fields])
  expect(piecesOf(pieces => json.addAnswer(value, undefined, pieces))).toEqual(alone)
  const answered = piecesOf(pieces => json.addAnswer(value, 'x', pieces))
  expect(readFrames(Buffer.concat(answered))).toEqual([{ ...fields, id: 'x' }])
  expect(answered[1].buffer).toBe(alone[0].buffer)
  expect(value.body.toString()).toBe(text)
})

test('a value counts as what it takes once a JSON session has wanted it', () => {
  const body = Buffer.alloc(3_000)
  expect(valueBytes(createValue(answer({ body })))).toBe(3_000)
  expect(valueBytes(createValue(answer({ body, format: 'base64' })))).toBe(7_000)
})
