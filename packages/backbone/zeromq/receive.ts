// Reads a ZeroMQ socket without starving the process: with a backlog, reading alone never lets a timer run.
import { setImmediate } from 'node:timers/promises'
import { TURN_MS } from '@keycast/service'

/** Calls `handle` for each message until the socket is closed. */
export async function receive(
  socket: { receive: () => Promise<Buffer[]>; closed: boolean },
  handle: (parts: Buffer[]) => void,
) {
  let turnEndsAt = performance.now() + TURN_MS
  while (!socket.closed) {
    const parts = await next(socket)
    if (parts) handle(parts)
    if (performance.now() < turnEndsAt) continue
    await setImmediate()
    turnEndsAt = performance.now() + TURN_MS
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
