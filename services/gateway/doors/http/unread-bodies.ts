// Bounds the memory of values that are being sent over HTTP: a client that does not read holds its value's bytes, also
// once the cache has newer ones.
import type { ServerResponse } from 'node:http'

/** @param bytesMax of all values under way; one sent to many counts once */
export function createUnreadBodies(bytesMax: number) {
  /** The number of responses that hold each body. */
  const holders = new Map<Buffer, number>()
  let bytes = 0

  /**
   * Counts a body as held until its response is over.
   *
   * @returns whether there is room for it
   */
  function hold(body: Buffer, response: ServerResponse): boolean {
    // Its client left while the body was fetched: the event that would release it has passed.
    if (response.destroyed) return true
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

  function release(body: Buffer) {
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
