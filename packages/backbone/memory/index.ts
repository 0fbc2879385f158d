// The backbone in one process, without sockets, for unit tests of services.
export { createMemoryBackbone } from './backbone-memory.ts'
export { createMemoryNetwork } from './network.ts'
export { createMemoryRooms } from './rooms-memory.ts'
