import { createValue } from './value.ts'

const answer = (rest: object) =>
  ({ key: 'tick:1', version: 'v', contentType: 'application/json', format: 'json', ...rest }) as any

test('a small body is copied out of the block it came in, a large one that fills its block is kept as it is', () => {
  const block = Buffer.alloc(100_000, '1')
  const small = createValue(answer({ body: block.subarray(0, 100) }))
  expect(small.body.buffer).not.toBe(block.buffer)
  expect(small.body.buffer.byteLength).toBe(100)
  expect(createValue(answer({ body: block })).body).toBe(block)
})

test('a delta is copied out of the block it came in as well', () => {
  const block = Buffer.alloc(100_000, '1')
  const delta = { from: 'u', bytes: block.subarray(0, 100) }
  const value = createValue(answer({ body: Buffer.from('1'), delta }))
  expect(value.delta?.bytes).toEqual(delta.bytes)
  expect(value.delta?.bytes.buffer.byteLength).toBe(100)
})
