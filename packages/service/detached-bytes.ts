// Copies bytes that are held for long out of the larger block of memory that they arrived in: while a slice is held, so is
// the whole block.

/**
 * Up to this size bytes are always copied: parts from ZeroMQ of up to 8 KB share a block, and nothing on the part shows
 * that.
 */
const COPIED_BYTES_MAX = 16 * 1024

/**
 * Larger bytes are copied only if the block around them wastes more than this: otherwise the copy costs more than it
 * frees.
 */
const SPARE_BYTES_MAX = 512

/** @returns the same bytes, which keep no larger block of memory alive */
export function detached(bytes: Buffer): Buffer {
  const spareBytes = bytes.buffer.byteLength - bytes.length
  if (bytes.length > COPIED_BYTES_MAX && spareBytes <= SPARE_BYTES_MAX) return bytes
  // Not from Node's pool, whose blocks are shared, too.
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}
