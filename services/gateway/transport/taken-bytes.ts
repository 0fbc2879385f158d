// How much of what was written to a socket has left. It relies on what Node does not promise: a socket's `_handle` is
// libuv's stream, whose `bytesWritten` and `writeQueueSize` Node itself reads to tell a slow connection from a dead one.
import type { Socket } from 'node:net'

export function takenBytes(socket: Socket): number {
  const { _handle } = socket as unknown as { _handle: { bytesWritten: number; writeQueueSize: number } | null }
  // A socket that was closed meanwhile takes no more.
  return _handle ? _handle.bytesWritten - _handle.writeQueueSize : 0
}
