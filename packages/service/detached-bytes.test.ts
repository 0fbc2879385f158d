import { detached } from './detached-bytes.ts'

test.each([
  ['small ones out of a shared block', Buffer.alloc(8_192, 'ab').subarray(1, 101)],
  ['small ones that seem to be alone', Buffer.alloc(100, 'ab')],
  ['large ones out of a much larger block', Buffer.alloc(100_000, 'ab').subarray(1, 50_001)],
])('%s are copied into memory of their own', (_, bytes) => {
  const copy = detached(bytes)
  expect(copy).toEqual(bytes)
  expect(copy).not.toBe(bytes)
  expect(copy.buffer.byteLength).toBe(bytes.length)
})

test('large ones that have their block nearly for themselves are left where they are', () => {
  const block = Buffer.alloc(100_000)
  expect(detached(block)).toBe(block)
  const withoutBom = block.subarray(3)
  expect(detached(withoutBom)).toBe(withoutBom)
})
