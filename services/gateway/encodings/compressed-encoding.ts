// An encoding made of a plain one, for sessions that negotiated permessage-deflate: the message's head stored, the body's
// DEFLATE blocks behind it. Until a value's blocks are made, or where they gain nothing, its messages are the plain ones.
import type { RequestId } from '@keycast/protocol'
import { detached } from '@keycast/service'
import type { Counts } from '../counts.ts'
import type { Value } from '../topics/values/value.ts'
import { compressedFrameStart } from '../transport/frames.ts'
import type { Piece } from '../transport/transport.ts'
import type { CompressedForm } from './compression-queue.ts'
import { storedBlock } from './deflate.ts'
import type { Encoding, PlainEncoding } from './encoding.ts'

interface Deps {
  compression: { formOf(value: Value, slot: number, plain: PlainEncoding): CompressedForm }
  counts: Pick<Counts, 'sentCompressed' | 'savedBytes'>
}

export function createCompressed(plain: PlainEncoding, slot: number, { compression, counts }: Deps): Encoding {
  function startOf(value: Value, blocks: Buffer, id?: RequestId) {
    return compressedFrameStart(plain.isBinary, storedBlock(plain.head(value, id)), blocks.length)
  }

  const addValue: Encoding['addValue'] = (value, pieces) => {
    const form = value.forms[slot] as CompressedForm | undefined
    if (!form?.blocks) return plain.addValue(value, pieces)
    form.start ??= detached(startOf(value, form.blocks))
    return add(pieces, form.start, form.blocks, form.savedBytes)
  }

  function add(pieces: Piece[], start: Buffer, blocks: Buffer, savedBytes: number) {
    counts.sentCompressed++
    counts.savedBytes += savedBytes
    pieces.push(start, blocks)
    return start.length + blocks.length
  }

  return {
    subprotocol: plain.subprotocol,
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
