// A backend on a free port and a puller that asks it, for the tests of pull.ts.

import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { realWorld, type World } from '@keycast/service'
import type { Lease } from '../worker-messages.ts'
import { createConnections } from './http/connections.ts'
import { createPuller } from './pull.ts'

let cleanups: (() => void)[] = []

/** To be called after each test. */
export function cleanUp() {
  for (const cleanup of cleanups) cleanup()
  cleanups = []
}

/** Secrets that no result may repeat. */
export const secret = 'Bearer of-a-secret'

/** A backend that counts what it is asked, and a puller; both end with the test. */
export async function setup(handler: RequestListener, world: Partial<World> = {}) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    handler(request, response)
  })
  const times: (number | undefined)[] = []
  let connections = 0
  server.on('connection', () => connections++)
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = server.address() as AddressInfo
  const clientConnections = createConnections(realWorld)
  const puller = createPuller({ ...realWorld, ...world, connections: clientConnections })
  cleanups.push(() => {
    clientConnections.close()
    server.close()
    server.closeAllConnections()
  })
  return {
    server,
    requests,
    connections: () => connections,
    async pull(changes?: Partial<Lease>, body?: string) {
      const { askedAt, ...pulled } = await puller.pull(
        lease({ url: `http://127.0.0.1:${port}/conversations/1`, hasBody: body !== undefined, ...changes }),
        body === undefined ? undefined : Buffer.from(body),
      )
      times.push(askedAt)
      return pulled
    },
    /** When the backend was asked for each result, by the host's clock. */
    times,
  }
}

export function lease(changes: Partial<Lease>): Lease {
  return {
    type: 'lease',
    lease: 1,
    key: 'conversation:1',
    url: 'http://127.0.0.1:1/',
    headers: { authorization: secret },
    timeoutMs: 5_000,
    bytesMax: 1_000,
    delta: false,
    ...changes,
  }
}

export const answering =
  (status: number, headers: Record<string, string> = {}, body: string | Buffer = ''): RequestListener =>
  (_, response) => {
    response.writeHead(status, headers).end(body)
  }

export const json = { 'content-type': 'application/json' }
