// Counts the bytes of the requests that a node has not heard yet. A link that reaches the limit waits until the node has
// read some. Otherwise a node that takes over half a million keys would have thousands of requests in its queue, and a
// new want would wait behind them all.

/** For one link: some 25,000 keys that are said again. A node reads that much in a quarter of a second. */
export const UNHEARD_BYTES_MAX = 4 * 2 ** 20

export function createUnheard() {
  /** By number. */
  const bytesOf = new Map<number, number>()
  let bytes = 0
  let heard = 0

  return {
    /** @param number of a request, from 1 on @param size in bytes */
    add(number: number, size: number) {
      bytesOf.set(number, size)
      bytes += size
    },

    /** The node has heard the first `reached` requests. */
    confirm(reached: number) {
      while (heard < reached && bytesOf.size > 0) {
        heard++
        bytes -= bytesOf.get(heard) ?? 0
        bytesOf.delete(heard)
      }
    },

    /** The link has a new id, and says everything again under it. */
    startAnew() {
      bytesOf.clear()
      bytes = 0
      heard = 0
    },

    isFull: () => bytes >= UNHEARD_BYTES_MAX,
  }
}
