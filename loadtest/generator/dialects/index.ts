// The list of dialects, and which one a kind of system speaks.
import type { Dialect } from './dialect.ts'
import { keycast } from './keycast.ts'
import { socketIo } from './socket-io.ts'
import { socketCluster } from './socketcluster.ts'

export const dialects: Record<string, Dialect> = { keycast, 'socket.io': socketIo, socketcluster: socketCluster }

/** @param kind of a system @returns its dialect's name */
export const dialectOf = (kind: string): string => (Object.hasOwn(dialects, kind) ? kind : 'keycast')
