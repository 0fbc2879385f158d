// Reads and writes a ZeroMQ socket as zeromq.js allows it: without starving the process, as with a backlog reading alone
// never lets a timer run; and by one writer, as there may be a single send at a time.
import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { FLOW_MS } from '@keycast/service'

/** Calls `handle` for each message until the socket is closed. */
export async function receive(
  socket: { receive: () => Promise<Buffer[]>; closed: boolean },
  handle: (parts: Buffer[]) => void,
) {
  let turnEndsAt = performance.now() + FLOW_MS
  while (!socket.closed) {
    const parts = await next(socket)
    if (parts) handle(parts)
    if (performance.now() < turnEndsAt) continue
    await setImmediate()
    turnEndsAt = performance.now() + FLOW_MS
  }
}

/** @returns `undefined` if there was none after all */
async function next(socket: { receive: () => Promise<Buffer[]>; closed: boolean }): Promise<Buffer[] | undefined> {
  try {
    return await socket.receive()
  } catch (error) {
    // EAGAIN is how a closing socket ends a receive. It also comes, on a socket with CURVE, with each ZMTP heartbeat that
    // a peer sends: zeromq.js 6.8.0 is told that there is something to read, and there is no message for it.
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined
    throw error
  }
}

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

/**
 * zeromq.js throws EBUSY, synchronously, on a second send. Messages wait here in order; the caller keeps the queue bounded.
 */
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
