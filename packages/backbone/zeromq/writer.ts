// The one writer of a ZeroMQ socket: zeromq.js allows a single send at a time and throws EBUSY, synchronously, on a
// second one. Messages wait here in order; the caller keeps the queue bounded.

/** The part of a socket that is used here. */
interface Sender {
  send: (parts: Buffer[]) => Promise<void>
}

export function createWriter(socket: Sender) {
  let queue: { parts: Buffer[]; done: (error?: Error) => void }[] = []
  let draining: Promise<void> | undefined

  async function drain() {
    while (queue.length > 0) {
      const batch = queue
      queue = []
      for (const { parts, done } of batch) {
        let failure: Error | undefined
        try {
          await socket.send(parts)
        } catch (error) {
          failure = error as Error
        }
        done(failure)
      }
    }
    draining = undefined
  }

  return {
    write(parts: Buffer[], done: (error?: Error) => void) {
      queue.push({ parts, done })
      draining ??= drain()
    },
    /** Resolves when the socket has, or has refused, everything written so far. */
    drained: async () => draining,
  }
}
