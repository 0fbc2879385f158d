// Bounds the memory of values that are being sent over HTTP: a client that does not read holds its value's bytes, also
// once the cache has newer ones.

/** @typedef {ReturnType<typeof createUnreadBodies>} UnreadBodies */

/** @param {number} bytesMax of all values under way; one sent to many counts once */
export function createUnreadBodies(bytesMax) {
  /** The number of responses that hold each body. @type {Map<Buffer, number>} */
  const holders = new Map()
  let bytes = 0

  /**
   * Counts a body as held until its response is over.
   *
   * @param {Buffer} body
   * @param {import('node:http').ServerResponse} response
   * @returns {boolean} whether there is room for it
   */
  function hold(body, response) {
    const others = holders.get(body) ?? 0
    if (others === 0) {
      // One is always allowed: a value larger than the limit would otherwise never be served.
      if (bytes > 0 && bytes + body.length > bytesMax) return false
      bytes += body.length
    }
    holders.set(body, others + 1)
    response.once('close', () => release(body))
    return true
  }

  /** @param {Buffer} body */
  function release(body) {
    const others = (holders.get(body) ?? 1) - 1
    if (others > 0) {
      holders.set(body, others)
      return
    }
    holders.delete(body)
    bytes -= body.length
  }

  return { hold, bytes: () => bytes }
}
