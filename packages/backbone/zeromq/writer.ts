// The one writer of a ZeroMQ socket: zeromq.js allows a single send at a time and throws EBUSY, synchronously, on a
// second one. Messages wait here in order; the caller keeps the queue bounded.
import { isUtf8 } from 'node:buffer'

/** The part of a socket that is used here. */
interface Sender {
  send: (parts: (Buffer | string)[]) => Promise<void>
}

/** zeromq.js copies a Buffer of up to so many bytes. */
const COPIED_BYTES_MAX = 128

/** Text up to this size is copied: that takes less than a microsecond. */
const TEXT_BYTES_MAX = 4096

/**
 * zeromq.js 6.8.0 sends a Buffer above 128 bytes without a copy. Once it has left, ZeroMQ's thread wakes this process,
 * only to let go of it: 50 µs of CPU where nothing else was to be done. A string is copied.
 */
function copied(part: Buffer): Buffer | string {
  const { length } = part
  return length > COPIED_BYTES_MAX && length <= TEXT_BYTES_MAX && isUtf8(part) ? part.toString() : part
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
          await socket.send(parts.map(copied))
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
