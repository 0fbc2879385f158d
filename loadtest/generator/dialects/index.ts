// The list of dialects, and which one a kind of system speaks.
import type { Dialect } from './dialect.ts'
import { keycast, keycastBytes } from './keycast.ts'
import { socketIo } from './socket-io.ts'
import { socketCluster } from './socketcluster.ts'

export const dialects: Record<string, Dialect> = {
  keycast,
  bytes: keycastBytes,
  'socket.io': socketIo,
  socketcluster: socketCluster,
}

/**
 * @param kind of a system
 * @param json in place of what the client library speaks
 * @returns its dialect's name
 */
export function dialectOf(kind: string, json: boolean): string {
  if (Object.hasOwn(dialects, kind) && kind !== 'keycast') return kind
  return !json && (kind === 'keycast' || kind === 'given') ? 'bytes' : 'keycast'
}
