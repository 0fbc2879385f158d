// What unit tests of services use of the backbone: one process, no sockets.
export { createMemoryNetwork } from './network.js'
export { createMemoryRooms } from './rooms-memory.js'
