// Free ports for processes that are told theirs, or that come back on it. The kernel gives none of this range to anybody:
// while a process is away, a connection of another test could be given its port.
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the range of ephemeral ports (`net.ipv4.ip_local_port_range`). */
const FIRST = 20_000

/** Test files that run at one time have ranges of their own: a port is free until the process it is meant for starts. */
const PORTS_EACH = 1_500
const RANGES = 8

const range = (Number(process.env.JEST_WORKER_ID ?? 1) - 1) % RANGES
// Not always from the first on: the file before this one may have just ended, and its connections linger.
let last = Math.floor(Math.random() * PORTS_EACH)

export async function freePorts(count: number) {
  const ports: number[] = []
  while (ports.length < count) {
    last = (last + 1) % PORTS_EACH
    const port = FIRST + range * PORTS_EACH + last
    if (await isFree(port)) ports.push(port)
  }
  return ports
}

async function isFree(port: number) {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
