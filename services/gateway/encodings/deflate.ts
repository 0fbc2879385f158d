// The form of a value in permessage-deflate (RFC 7692): its body compressed once, off the event loop, for everybody.
//
// A message's compressed payload is a series of DEFLATE blocks, and blocks may be made apart and put together. So the
// head of a message, different for each `get`, is a stored block of its own, and the blocks of the body behind it are
// the same bytes for every session. They refer to nothing before themselves: no session needs a compression context.
import { promisify } from 'node:util'
import { constants, deflateRaw } from 'node:zlib'

const deflate = promisify(deflateRaw)

/** Below it a frame gains less than compressing costs, and often nothing at all. */
export const DEFLATE_BYTES_MIN = 1_024

/** The end of every sync flush. Senders leave it out (RFC 7692 section 7.2.1). */
const SYNC_TAIL_BYTES = 4

/** Largest stored block (RFC 1951 section 3.2.4). */
const STORED_BYTES_MAX = 65_535

const STORED_HEADER_BYTES = 5

/**
 * The end of a message's payload, compressed: what follows the {@link storedBlock} of its head.
 *
 * @returns in memory of its own
 */
export async function deflateBlocks(body: Buffer): Promise<Buffer> {
  const blocks = await deflate(body, { finishFlush: constants.Z_SYNC_FLUSH })
  const kept = Buffer.allocUnsafeSlow(blocks.length - SYNC_TAIL_BYTES)
  blocks.copy(kept, 0, 0, kept.length)
  return kept
}

/**
 * Bytes as a DEFLATE block that stores them, not the last of its series (RFC 1951 section 3.2.4).
 *
 * @param text at most 65,535 bytes in UTF-8: heads are a few hundred
 */
export function storedBlock(text: string) {
  const bytes = Buffer.byteLength(text)
  if (bytes > STORED_BYTES_MAX) throw new RangeError(`a stored block holds ${STORED_BYTES_MAX} bytes, not ${bytes}`)
  const block = Buffer.allocUnsafe(STORED_HEADER_BYTES + bytes)
  block[0] = 0
  block.writeUInt16LE(bytes, 1)
  block.writeUInt16LE(bytes ^ 0xffff, 3)
  block.write(text, STORED_HEADER_BYTES)
  return block
}
