// Bytes that are held for long, detached from the larger block of memory that they arrived in.

/** Up to this size bytes are always copied: a part from ZeroMQ may share its block with others, and nothing shows that. */
const COPIED_BYTES_MAX = 16 * 1024

/** Larger bytes are copied where the block around them wastes more than this. */
const SPARE_BYTES_MAX = 512

/** @param {Buffer} bytes @returns {Buffer} the same bytes, which keep no larger block of memory alive */
export function detached(bytes) {
  const spareBytes = bytes.buffer.byteLength - bytes.length
  if (bytes.length > COPIED_BYTES_MAX && spareBytes <= SPARE_BYTES_MAX) return bytes
  // Not from Node's pool, whose blocks are shared, too.
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}
