// The ZeroMQ sockets between gateways and fetcher nodes, once.
export { FetcherUnavailable } from './backbone.js'
