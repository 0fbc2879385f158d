// The ZeroMQ sockets between gateways and fetcher nodes, once.
export { FetcherUnavailable } from './backbone.js'
export { createMemoryBackbone } from './backbone-memory.js'
export { createZeromqBackbone, createZeromqHub } from './backbone-zeromq.js'
export { readNodes } from './nodes.js'
export { receive } from './receive.js'
export { createWriter } from './writer.js'
