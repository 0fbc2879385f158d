// Values as sessions are sent them that negotiated compression: the message's head stored, the body's blocks behind it.
import { valueHead, valueLine } from '@keycast/protocol'
import { keepable } from '../keys/value.js'
import { compressedFrameStart } from '../transport/frames.js'
import { storedBlock } from './deflate.js'

/**
 * @typedef {import('../keys/value.js').Value} Value
 *
 * What compression.js makes of one version for one subprotocol. Neither `rest` nor `plain`: it is being made.
 * @typedef {object} Deflated
 * @property {Buffer | undefined} start what a fan-out begins with, see {@link deflatedFrame}
 * @property {Buffer | undefined} rest the body's blocks, which end the frame
 * @property {number} savedBytes how much less `rest` is than what it was made of
 * @property {boolean} plain whether nobody is to wait: it is sent uncompressed as long as there is no `rest`
 * @property {import('../keys/subscriptions.js').Subscription[]} waiting
 */

/**
 * A value as it is fanned out, the same two Buffers for all.
 *
 * @param {Value} value
 * @param {boolean} bytes for `keycast.v1.bytes`
 * @returns {{ start: Buffer, rest: Buffer, savedBytes: number } | undefined} `undefined` where it is to be sent uncompressed
 */
export function deflatedFrame(value, bytes) {
  const deflated = bytes ? value.deflatedBytes : value.deflatedJson
  if (!deflated?.rest) return undefined
  const { rest, savedBytes } = deflated
  deflated.start ??= keepable(deflatedStart(value, bytes, rest))
  return { start: deflated.start, rest, savedBytes }
}

/**
 * What stands before {@link Deflated}'s `rest`.
 *
 * @param {Value} value
 * @param {boolean} bytes for `keycast.v1.bytes`
 * @param {Buffer} rest
 * @param {import('@keycast/protocol').RequestId} [id] of the one request it answers
 */
export function deflatedStart({ key, version, contentType, format }, bytes, rest, id) {
  const head = bytes
    ? valueLine({ id, key, version, contentType })
    : valueHead({ id, key, version, contentType, format })
  return compressedFrameStart(bytes, storedBlock(head), rest.length)
}
