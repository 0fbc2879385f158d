// Free ports for processes that are told theirs, or that come back on it. The kernel gives none of this range to anybody:
// while a process is away, a connection of another test could be given its port.
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { atEnd } from './cleanup.ts'

/** Below the range of ephemeral ports (`net.ipv4.ip_local_port_range`). */
const FIRST = 20_000

/**
 * Test files that run at one time have ranges of their own, those of other runs on this machine too: a port is free until
 * the process it is meant for starts. The file that listens on the first port of a range has the range.
 */
export const PORTS_EACH = 400
const RANGES = 30

let range: Promise<number> | undefined
// Not always from the first on: the file before this one may have just ended, and its connections linger.
let last = Math.floor(Math.random() * PORTS_EACH)

export async function freePorts(count: number) {
  range ??= takeRange()
  const first = await range
  const ports: number[] = []
  while (ports.length < count) {
    last = (last + 1) % PORTS_EACH
    const port = first + last // others may be asked for meanwhile
    const server = await listenAt(port)
    if (!server) continue
    server.close()
    await once(server, 'close')
    ports.push(port)
  }
  return ports
}

/** @returns its first port */
async function takeRange(): Promise<number> {
  for (let number = RANGES - 1; number >= 0; number--) {
    const first = FIRST + number * PORTS_EACH
    const server = await listenAt(first)
    if (!server) continue
    server.unref()
    atEnd(() => {
      server.close()
      range = undefined
    })
    return first
  }
  throw new Error(`more than ${RANGES} test files run on this machine`)
}

/** @returns `undefined` where the port is taken */
async function listenAt(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
    return server
  } catch {
    return undefined
  }
}
