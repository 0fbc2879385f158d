import { randomBytes } from 'node:crypto'
import { inflateRawSync } from 'node:zlib'
import { deflateBlocks, storedBlock } from './deflate.ts'

/** As a receiver does it (RFC 7692 section 7.2.2). */
const inflate = (...parts: Buffer[]) =>
  inflateRawSync(Buffer.concat([...parts, Buffer.from([0, 0, 0xff, 0xff])]), { finishFlush: 2 })

const json = Buffer.from(
  JSON.stringify(Array.from({ length: 3_000 }, (_, id) => ({ id, author: 'ada', text: 'good morning' }))),
)

test.each([
  ['JSON', json],
  ['bytes that do not compress', randomBytes(200_000)],
  ['nothing', Buffer.alloc(0)],
])('%s behind any head inflates to head and body', async (_, body) => {
  const blocks = await deflateBlocks(body)
  for (const head of ['', '{"id":1}', 'é'.repeat(1_000)]) {
    expect(inflate(storedBlock(head), blocks).equals(Buffer.concat([Buffer.from(head), body]))).toBe(true)
  }
})

test('JSON becomes several times smaller', async () => {
  expect((await deflateBlocks(json)).length).toBeLessThan(json.length / 5)
})

test('a head that no stored block holds is an error', () => {
  expect(() => storedBlock('x'.repeat(65_536))).toThrow('65536')
})
