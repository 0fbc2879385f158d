// Applies a Fossil delta: https://fossil-scm.org/home/doc/trunk/www/delta_format.wiki. Bytes from a network are not
// trusted: every number is checked before it is used.
import { createContent } from './content.js'

/**
 * Bytes that a delta may have, and may make. A few bytes could ask for gigabytes otherwise. A gateway sends none for a
 * value of more than 512 KiB.
 */
export const DELTA_BYTES_MAX = 4 * 1024 ** 2

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~'
const digitOf = new Int8Array(256).fill(-1)
for (let digit = 0; digit < DIGITS.length; digit += 1) digitOf[DIGITS.charCodeAt(digit)] = digit

const LINE_FEED = 10
const COMMA = 44
const COLON = 58
const SEMICOLON = 59
const AT = 64

/**
 * @param {import('./content.js').Content | undefined} content
 * @param {{ from: string, version: string, contentType: string }} message
 * @param {Uint8Array} delta
 * @returns {import('./content.js').Content | undefined} the next content, if the delta is one for this content
 */
export function changed(content, { from, version, contentType }, delta) {
  if (content?.version !== from) return undefined
  try {
    return createContent({ version, contentType, bytes: applyDelta(content.bytes, delta) })
  } catch {
    return undefined
  }
}

/**
 * @param {Uint8Array} from
 * @param {Uint8Array} delta
 * @returns {Uint8Array} the delta applied to `from`
 * @throws {RangeError} if the delta is malformed, or was not made for `from`
 */
export function applyDelta(from, delta) {
  let at = 0

  const byte = () => (at < delta.length ? delta[at++] : refuse('it ends too early'))

  /** Reads a number and the character behind it. @returns {[number, number]} */
  const number = () => {
    let value = 0
    for (;;) {
      const character = byte()
      const digit = digitOf[character]
      if (digit < 0) return [value, character]
      value = value * 64 + digit
      if (value > 0xffffffff) refuse('it is too large')
    }
  }

  const [size, afterSize] = number()
  if (afterSize !== LINE_FEED) refuse('it does not begin with a size')
  if (Math.max(size, delta.length) > DELTA_BYTES_MAX) refuse('it is too large')
  const made = new Uint8Array(size)
  let length = 0

  for (;;) {
    const [count, command] = number()
    if (command === SEMICOLON) {
      if (length !== size) refuse('it makes less than it says')
      if (at !== delta.length) refuse('it goes on after its end')
      if (count !== checksumOf(made)) refuse('the checksum is wrong')
      return made
    }
    if (count > size - length) refuse('it makes more than it says')
    if (command === AT) {
      const [offset, end] = number()
      if (end !== COMMA) refuse('a copy does not end')
      if (offset + count > from.length) refuse('it copies from beyond the end')
      made.set(from.subarray(offset, offset + count), length)
    } else if (command === COLON) {
      if (count > delta.length - at) refuse('it ends too early')
      made.set(delta.subarray(at, at + count), length)
      at += count
    } else refuse('no command is written like that')
    length += count
  }
}

/** The sum of the bytes as 32-bit words, high byte first, the last filled up with zeros. @param {Uint8Array} bytes */
function checksumOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let sum = 0
  let at = 0
  for (; at + 4 <= bytes.length; at += 4) sum = (sum + view.getUint32(at)) | 0
  for (let shift = 24; at < bytes.length; at += 1, shift -= 8) sum = (sum + (bytes[at] << shift)) | 0
  return sum >>> 0
}

/** @param {string} why @returns {never} */
function refuse(why) {
  throw new RangeError(`the delta cannot be applied: ${why}`)
}
