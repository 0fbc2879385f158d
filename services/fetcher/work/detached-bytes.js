// Bytes that are to be held for long, without those they came with.

/** So little is copied always: a part that ZeroMQ received may lie in a block with others, and nothing shows it. */
const COPIED_BYTES_MAX = 16 * 1024

/** More than this around larger ones is worth a copy. */
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
