// WebSocket frames by their grammar (RFC 6455 section 5.2), each bit of it at any value, with payloads that are deflated,
// or only say so (RFC 7692).
import { deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { absurdJson } from './absurd.ts'
import { requests } from './messages.ts'

/** What an empty block at the end of a message in permessage-deflate is cut off by (RFC 7692 section 7.2.1). */
const TAIL_BYTES = 4

const deflated = (data: Buffer) => deflateRawSync(data, { finishFlush: 2 }).subarray(0, -TAIL_BYTES)

const texts = absurdJson(requests).map(({ bytes }) => bytes)

/** Small bytes of a large message among them, and streams that are cut, or never were deflated. */
const payloads = fc.oneof(
  { weight: 4, arbitrary: texts },
  { weight: 3, arbitrary: texts.map(deflated) },
  { weight: 1, arbitrary: texts.map(text => deflated(text).subarray(0, -1)) },
  { weight: 1, arbitrary: fc.constant(deflated(Buffer.alloc(4 * 2 ** 20, ' '))) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map(bytes => Buffer.from(bytes)) },
)

const often = <T>(usual: T, other: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other })

/** A length in 7, 23 or 71 bits, also in more than it needs. */
function lengthOf(length: number, form: 'short' | 'medium' | 'long'): Buffer {
  if (form === 'short' && length < 126) return Buffer.from([length])
  if (form !== 'long' && length < 65_536) return Buffer.from([126, length >> 8, length & 255])
  const bytes = Buffer.alloc(9, 127)
  bytes.writeBigUInt64BE(BigInt(length), 1)
  return bytes
}

/** One frame. `says`: the length that it names in place of its own. */
export const frames = fc
  .record({
    isLast: often(true, fc.constant(false)),
    isCompressed: fc.boolean(),
    reserved: often(0, fc.integer({ min: 0, max: 3 })),
    opcode: fc.oneof(
      { weight: 6, arbitrary: fc.constant(1) },
      { weight: 4, arbitrary: fc.integer({ min: 0, max: 15 }) },
    ),
    isMasked: often(true, fc.constant(false)),
    form: often('short' as 'short' | 'medium' | 'long', fc.constantFrom('medium' as const, 'long' as const)),
    says: often<number | undefined>(undefined, fc.constantFrom(0, 1, 125, 65_535, 2 ** 31, 2 ** 32, 2 ** 53)),
    mask: fc.uint8Array({ minLength: 4, maxLength: 4 }),
    payload: payloads,
  })
  .map(({ isLast, isCompressed, reserved, opcode, isMasked, form, says, mask, payload }) => {
    const first = (isLast ? 128 : 0) | (isCompressed ? 64 : 0) | (reserved << 4) | opcode
    const length = lengthOf(says ?? payload.length, form)
    if (isMasked) length[0] |= 128
    const masked = isMasked ? payload.map((byte, index) => byte ^ mask[index % 4]) : payload
    return Buffer.concat([Buffer.from([first]), length, ...(isMasked ? [mask] : []), masked])
  })
