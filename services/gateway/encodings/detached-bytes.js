// Bytes to be kept, in memory of their own: a small slice that is kept keeps the whole block it was cut from.

/**
 * Parts received by ZeroMQ up to 8 KB share a block, which one kept part keeps alive: up to this many bytes are copied
 * out of it. Above, the copy costs more than what it could free.
 */
const COPY_BYTES_MAX = 16 * 1024

/** @param {Buffer} bytes */
export function detached(bytes) {
  if (bytes.length > COPY_BYTES_MAX) return bytes
  // Not from Node's pool: there too a small slice would keep its 8 KB block.
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}
