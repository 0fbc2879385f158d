import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { createCounts } from '../counts.ts'
import { createValue, type Value, valueBytes } from '../topics/values/value.ts'
import { codings } from './codings.ts'
import { createEncodings } from './index.ts'

const read = { br: brotliDecompressSync, gzip: gunzipSync }

function setUp() {
  const held = new Map<string, Value>()
  const grown: string[] = []
  const counts = createCounts()
  const { coded } = createEncodings({
    latest: key => held.get(key),
    grown: key => grown.push(key),
    resume() {},
    counts,
    now: () => 0,
  })
  const hold = (version: string, body = Buffer.from(JSON.stringify(`${version} `.repeat(1_000))), key = 'a:1') => {
    const value = createValue({ key, version, contentType: 'application/json', format: 'json', body })
    held.set(key, value)
    return value
  }
  return { coded, counts, grown, hold }
}

test.each(codings)('a version is compressed once in %s for all who ask, and counts in the cache', async coding => {
  const { coded, counts, grown, hold } = setUp()
  const value = hold('v')
  const before = valueBytes(value)
  const [one, other] = (await Promise.all([coded(value, coding), coded(value, coding)])) as Buffer[]
  expect(read[coding](one).equals(value.body)).toBe(true)
  expect(await coded(value, coding)).toBe(one)
  expect(other).toBe(one)
  expect(one.buffer.byteLength).toBe(one.length)
  expect(counts.compressions.kept).toBe(1)
  expect(grown).toEqual(['a:1'])
  expect(valueBytes(value)).toBe(before + one.length)
})

test('a version that was overtaken is sent as it is', async () => {
  const { coded, counts, hold } = setUp()
  const first = hold('v')
  const waiting = coded(first, 'gzip')
  hold('w')
  expect(await waiting).toBeUndefined()
  expect(await coded(first, 'br')).toBeUndefined()
  expect(counts.compressions).toMatchObject({ overtaken: 2, kept: 0 })
})

test('a version that is asked for while too much is queued is sent as it is, and compressed for those who come later', async () => {
  const { coded, counts, hold } = setUp()
  const huge = (version: string) => hold(version, Buffer.from(JSON.stringify(version.repeat(5 * 1024 ** 2))), version)
  const first = coded(huge('a:1'), 'gzip')
  const value = huge('a:2')
  expect(await coded(value, 'gzip')).toBeUndefined()
  expect(counts.compressions.busy).toBe(1)
  await first
  await new Promise(resolve => setImmediate(resolve))
  expect(read.gzip((await coded(value, 'gzip')) as Buffer).equals(value.body)).toBe(true)
})
