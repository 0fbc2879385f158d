// The reader of deltas, against the library that makes them: for any input it makes the right bytes or refuses.
import * as fossil from 'fossil-delta'
import { randomNumbers } from '../../../../test/support/random.js'
import { applyDelta, DELTA_BYTES_MAX } from './delta.js'

const bytes = (/** @type {string} */ text) => new TextEncoder().encode(text)
const apply = (/** @type {string} */ from, /** @type {string} */ delta) => applyDelta(bytes(from), bytes(delta))

test('makes what the library makes, of contents of every likeness and length', () => {
  const random = randomNumbers(1)
  const integer = (/** @type {number} */ below) => Math.floor(random() * below)
  for (let round = 0; round < 1_000; round += 1) {
    const alphabet = 1 + integer(255)
    const from = Uint8Array.from({ length: integer(400) }, () => integer(alphabet))
    const to = Uint8Array.from({ length: integer(400) }, (_, at) => (integer(20) ? (from[at] ?? 0) : integer(256)))
    const delta = Uint8Array.from(fossil.createDelta(from, to))
    expect(Buffer.compare(applyDelta(from, delta), to)).toBe(0)
  }
})

test('a damaged delta is refused, or makes what the library makes of it: nothing else, and no other error', () => {
  const random = randomNumbers(2)
  const integer = (/** @type {number} */ below) => Math.floor(random() * below)
  const line = 'all that was said in this conversation until now, '
  let refused = 0
  for (let round = 0; round < 2_000; round += 1) {
    const from = bytes(line.repeat(1 + integer(8)))
    const to = bytes(`${line.repeat(integer(8))}${round}${line.repeat(integer(8))}`)
    const delta = Uint8Array.from(fossil.createDelta(from, to))
    for (let n = 1 + integer(4); n > 0; n -= 1) {
      if (integer(4) > 0) delta[integer(delta.length)] = integer(256)
      else delta.copyWithin(integer(delta.length), integer(delta.length))
    }
    const cut = integer(3) ? delta : delta.subarray(0, integer(delta.length))
    try {
      const made = applyDelta(from, cut)
      expect(Buffer.compare(made, Uint8Array.from(fossil.applyDelta(from, cut)))).toBe(0)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      refused += 1
    }
  }
  expect(refused).toBeGreaterThan(1_600)
})

test('bytes without meaning are refused', () => {
  const random = randomNumbers(3)
  for (let round = 0; round < 2_000; round += 1) {
    const noise = Uint8Array.from({ length: Math.floor(random() * 40) }, () => random() * 256)
    expect(() => applyDelta(bytes('something'), noise)).toThrow(RangeError)
  }
})

test.each([
  ['nothing', '', 'it ends too early'],
  ['no size', ';', 'does not begin with a size'],
  ['a size alone', '3\n', 'it ends too early'],
  ['a number over 32 bits', '4000000\n', 'it is too large'],
  ['too large a result', 'G001\n', 'it is too large'],
  ['a literal longer than the delta', '3\n3:ab', 'it ends too early'],
  ['a literal longer than the result', '1\n3:abc0;', 'it makes more than it says'],
  ['a copy longer than the result', '1\n3@0,0;', 'it makes more than it says'],
  ['a copy from beyond the end', '3\n3@1,0;', 'it copies from beyond the end'],
  ['a copy without an end', '3\n3@0;0;', 'a copy does not end'],
  ['an unknown command', '3\n3!', 'no command is written like that'],
  ['too short a result', '3\n2:ab0;', 'it makes less than it says'],
  ['a wrong checksum', '3\n3:abc0;', 'the checksum is wrong'],
  ['more after the end', '0\n0;0;', 'it goes on after its end'],
])('%s is refused', (_, delta, why) => {
  expect(() => apply('abc', delta)).toThrow(why)
})

test('an empty result, and a copy of nothing at the very end, are allowed', () => {
  expect(apply('abc', '0\n0;')).toEqual(new Uint8Array())
  expect(apply('abc', '0\n0@3,0;')).toEqual(new Uint8Array())
})

test('a few bytes cannot ask for much memory, nor many that make nothing for much time', () => {
  expect(DELTA_BYTES_MAX).toBe(4 * 1024 ** 2)
  expect(() => apply('', '~~~~~\n')).toThrow('it is too large')
  expect(() => apply('', `0\n${'0@0,'.repeat(1024 ** 2)}0;`)).toThrow('it is too large')
})
