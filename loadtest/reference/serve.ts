// Runs a reference's server: in this process, or in several that share its port (node:cluster). For one that dies another
// is started.
import cluster from 'node:cluster'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerWorkers, createHub, createWorkerHub, type Hub, type Message } from './hub.ts'

const BACKLOG = 4_096

/**
 * @param options `workers`: processes that share the port; 1: none but this one
 * @param path that WebSockets are opened at
 * @param create `deliver` sends what was published to the members who are connected to this process
 */
export function serve(
  { host, port, workers }: { host: string; port: number; workers: number },
  path: string,
  create: (hub: Hub) => { server: Server; deliver?: (message: Message) => void },
) {
  process.once('SIGTERM', () => process.exit(0))
  const announce = (port: number) =>
    console.log(JSON.stringify({ msg: 'listening', port, url: `ws://${host}:${port}${path}` }))
  if (workers > 1 && cluster.isPrimary) {
    runWorkers(workers, announce)
    return
  }

  let deliver: (message: Message) => void = () => {}
  const hub = (cluster.isPrimary ? createHub : createWorkerHub)(message => deliver(message))
  const created = create(hub)
  const { server } = created
  if (created.deliver) deliver = created.deliver
  server.listen({ host, port, backlog: BACKLOG }, () => {
    if (cluster.isPrimary) announce((server.address() as AddressInfo).port)
  })
}

/** @param announce told once all of them listen */
function runWorkers(count: number, announce: (port: number) => void) {
  answerWorkers()
  let listening = 0
  cluster.on('listening', (_, { port }) => {
    listening += 1
    if (listening === count) announce(port)
  })
  cluster.on('exit', () => cluster.fork())
  for (let worker = 0; worker < count; worker++) cluster.fork()
}
