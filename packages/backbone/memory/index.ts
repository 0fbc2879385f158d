// The backbone in one process, without sockets, for unit tests of services.
export { createMemoryNetwork } from './network.ts'
export { createMemoryRooms } from './rooms-memory.ts'
