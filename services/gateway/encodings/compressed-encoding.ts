// An encoding made of a plain one, for sessions that negotiated permessage-deflate: the message's head stored, the body's
// DEFLATE blocks behind it. Until a value's blocks are made, or where they gain nothing, its messages are the plain ones.
import { detached } from '@keycast/service'
import { compressedFrameStart } from '../transport/frames.ts'
import { storedBlock } from './deflate.ts'

/**
 * @typedef {import('./encoding.ts').Encoding} Encoding
 * @typedef {import('./compression-queue.ts').CompressedForm} CompressedForm
 * @typedef {import('../keys/value.ts').Value} Value
 */

/**
 * @param {import('./encoding.ts').PlainEncoding} plain
 * @param {number} slot
 * @param {object} deps
 * @param {Pick<import('./compression-queue.ts').Compression, 'formOf'>} deps.compression
 * @param {Pick<import('../counts.ts').Counts, 'sentCompressed' | 'savedBytes'>} deps.counts
 * @returns {Encoding}
 */
export function createCompressed(plain, slot, { compression, counts }) {
  /** @param {Value} value @param {Buffer} blocks @param {import('@keycast/protocol').RequestId} [id] */
  function startOf(value, blocks, id) {
    return compressedFrameStart(plain.isBinary, storedBlock(plain.head(value, id)), blocks.length)
  }

  /** @type {Encoding['addValue']} */
  function addValue(value, pieces) {
    const form = /** @type {CompressedForm | undefined} */ (value.forms[slot])
    if (!form?.blocks) return plain.addValue(value, pieces)
    form.start ??= detached(startOf(value, form.blocks))
    return add(pieces, form.start, form.blocks, form.savedBytes)
  }

  /** @param {import('./encoding.ts').Piece[]} pieces @param {Buffer} start @param {Buffer} blocks @param {number} savedBytes */
  function add(pieces, start, blocks, savedBytes) {
    counts.sentCompressed++
    counts.savedBytes += savedBytes
    pieces.push(start, blocks)
    return start.length + blocks.length
  }

  return {
    subprotocol: plain.subprotocol,
    isCompressed: true,
    slot,
    addValue,
    // An answer does not wait: it is compressed where the blocks are there already, and asks for them where they are not.
    addAnswer(value, id, pieces) {
      const { blocks, savedBytes } = compression.formOf(value, slot, plain)
      if (!blocks) return plain.addAnswer(value, id, pieces)
      if (id === undefined) return addValue(value, pieces)
      return add(pieces, startOf(value, blocks, id), blocks, savedBytes)
    },
    // A delta leaves as it is: compression would make little of it any smaller.
    delta: plain.delta,
    control: plain.control,
    mustWait(value, subscription) {
      const form = compression.formOf(value, slot, plain)
      if (form.blocks || form.isPlain) return false
      form.waiting.push(subscription)
      return true
    },
  }
}
