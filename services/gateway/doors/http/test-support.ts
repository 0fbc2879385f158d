// Serves an app on a free port for tests, and asks it as a client does: over a socket, the path as it is written. The app is
// that of the port for clients, or one with a door or two.
import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { noContainment, realWorld } from '@keycast/service'
import type { FastifyInstance } from 'fastify'
import { createPublicApp } from './public.ts'

const defaults = {
  ...realWorld,
  origins: '*',
  connectionsMax: 1_000,
  unreadBytesMax: 1_000_000,
  containment: noContainment,
  log: { warn() {} },
}

type Deps = Parameters<typeof createPublicApp>[0]

/** @param given a test gateway, or what stands for its parts */
export const createTestApp = (given: Omit<Deps, keyof typeof defaults> & Partial<Deps>) =>
  createPublicApp({ ...defaults, ...given })

interface Asked {
  method?: string
  headers?: Record<string, string>
  body?: string
}

interface Answered {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
  json: () => any
}

const served: FastifyInstance[] = []

export async function serve(app: FastifyInstance): Promise<(path: string, asked?: Asked) => Promise<Answered>> {
  served.push(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return async (path, { method = 'GET', headers = {}, body } = {}) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false })
    sent.end(body)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const received = await buffer(response)
    return {
      status: response.statusCode as number,
      headers: response.headers,
      body: received,
      json: () => JSON.parse(String(received)),
    }
  }
}

/** Closes them all. For `afterEach`, or `afterAll` if a file's tests share an app. */
export async function closeServed() {
  await Promise.all(served.splice(0).map(app => app.close()))
}
