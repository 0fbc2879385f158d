// The list of dialects, by the kind of system that speaks them.
import { keycast } from './keycast.js'
import { socketIo } from './socket-io.js'

/** @type {Record<string, import('./dialect.js').Dialect>} */
export const dialects = { keycast, 'socket.io': socketIo }
