// The list of dialects, and which one a kind of system speaks.
import { keycast } from './keycast.ts'
import { socketIo } from './socket-io.ts'
import { socketCluster } from './socketcluster.ts'

/** @type {Record<string, import('./dialect.ts').Dialect>} */
export const dialects = { keycast, 'socket.io': socketIo, socketcluster: socketCluster }

/** @param {string} kind of a system @returns {string} its dialect's name */
export const dialectOf = kind => (Object.hasOwn(dialects, kind) ? kind : 'keycast')
