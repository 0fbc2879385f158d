// Reads a ZeroMQ socket without starving the process: with a backlog, `for await` alone never lets a timer run.
import { setImmediate } from 'node:timers/promises'

/** How long messages may be handled before everything else gets its turn. A 1 s beat is not late for this. */
const TURN_MS = 4

/**
 * Calls `handle` for each message until the socket is closed.
 *
 * @param {AsyncIterable<Buffer[]>} socket
 * @param {(parts: Buffer[]) => void} handle
 */
export async function receive(socket, handle) {
  let turnEndsAt = performance.now() + TURN_MS
  for await (const parts of socket) {
    handle(parts)
    if (performance.now() < turnEndsAt) continue
    await setImmediate()
    turnEndsAt = performance.now() + TURN_MS
  }
}
