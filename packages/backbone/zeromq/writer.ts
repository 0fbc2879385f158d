// The one writer of a ZeroMQ socket: zeromq.js allows a single send at a time and throws EBUSY, synchronously, on a
// second one. Messages wait here in order; the caller keeps the queue bounded.

/**
 * @typedef {{ send: (parts: Buffer[]) => Promise<void> }} Sender the part of a socket that is used here
 * @param {Sender} socket
 */
export function createWriter(socket) {
  /** @type {{ parts: Buffer[], done: (error?: Error) => void }[]} */
  let queue = []
  /** @type {Promise<void> | undefined} */
  let draining

  async function drain() {
    while (queue.length > 0) {
      const batch = queue
      queue = []
      for (const { parts, done } of batch) {
        /** @type {Error | undefined} */
        let failure
        try {
          await socket.send(parts)
        } catch (error) {
          failure = /** @type {Error} */ (error)
        }
        done(failure)
      }
    }
    draining = undefined
  }

  return {
    /** @param {Buffer[]} parts @param {(error?: Error) => void} done */
    write(parts, done) {
      queue.push({ parts, done })
      draining ??= drain()
    },
    /** Resolves when the socket has, or has refused, everything written so far. */
    drained: async () => draining,
  }
}
