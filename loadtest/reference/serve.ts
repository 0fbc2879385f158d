// Runs a reference's server: in this process, or in several that share its port (node:cluster). For one that dies another
// is started.
import cluster from 'node:cluster'
import { answerWorkers, createHub, createWorkerHub } from './hub.ts'

const BACKLOG = 4_096

/**
 * @param {{ host: string, port: number, workers: number }} options `workers`: processes that share the port; 1: none
 *   but this one
 * @param {string} path that WebSockets are opened at
 * @param {(hub: import('./hub.ts').Hub) => { server: import('node:http').Server,
 *   deliver?: (message: import('./hub.ts').Message) => void }} create `deliver` sends what was published to the members
 *   who are connected to this process
 */
export function serve({ host, port, workers }, path, create) {
  process.once('SIGTERM', () => process.exit(0))
  const announce = (/** @type {number} */ port) =>
    console.log(JSON.stringify({ msg: 'listening', port, url: `ws://${host}:${port}${path}` }))
  if (workers > 1 && cluster.isPrimary) {
    runWorkers(workers, announce)
    return
  }

  /** @type {(message: import('./hub.ts').Message) => void} */
  let deliver = () => {}
  const hub = (cluster.isPrimary ? createHub : createWorkerHub)(message => deliver(message))
  const created = create(hub)
  const { server } = created
  if (created.deliver) deliver = created.deliver
  server.listen({ host, port, backlog: BACKLOG }, () => {
    if (cluster.isPrimary) announce(/** @type {import('node:net').AddressInfo} */ (server.address()).port)
  })
}

/** @param {number} count @param {(port: number) => void} announce told once all of them listen */
function runWorkers(count, announce) {
  answerWorkers()
  let listening = 0
  cluster.on('listening', (_, { port }) => {
    listening += 1
    if (listening === count) announce(port)
  })
  cluster.on('exit', () => cluster.fork())
  for (let worker = 0; worker < count; worker++) cluster.fork()
}
