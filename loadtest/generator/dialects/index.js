// The list of dialects, and which one a kind of system speaks.
import { keycast } from './keycast.js'
import { socketIo } from './socket-io.js'
import { socketCluster } from './socketcluster.js'

/** @type {Record<string, import('./dialect.js').Dialect>} */
export const dialects = { keycast, 'socket.io': socketIo, socketcluster: socketCluster }

/** @param {string} kind of a system @returns {string} its dialect's name */
export const dialectOf = kind => (Object.hasOwn(dialects, kind) ? kind : 'keycast')
