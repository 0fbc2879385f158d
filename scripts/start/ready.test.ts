import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { untilReady } from './ready.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function serve(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { name: 'gateway', healthUrl: `http://127.0.0.1:${port}/health/ready` }
}

const never = new AbortController().signal

test('a service is asked until it is ready', async () => {
  let asked = 0
  const service = await serve((_, response) => {
    asked += 1
    response.writeHead(asked < 3 ? 503 : 200).end()
  })
  await untilReady(service, { deadlineMs: 10_000, signal: never })
  expect(asked).toBe(3)
})

test('a service that is not ready in time is named, with its last answer', async () => {
  const service = await serve((_, response) => response.writeHead(503).end('{"reason":"no worker"}'))
  await expect(untilReady(service, { deadlineMs: 150, signal: never })).rejects.toThrow(
    /gateway was not ready within 0.15 s.*503 .*no worker/,
  )
})

test('a service that does not listen is named too', async () => {
  const service = { name: 'fetcher', healthUrl: 'http://127.0.0.1:1/health/ready' }
  await expect(untilReady(service, { deadlineMs: 150, signal: never })).rejects.toThrow(
    /fetcher was not ready.*ECONNREFUSED|bad port/,
  )
})

test('waiting ends when the run ends', async () => {
  const ending = new AbortController()
  const service = await serve((_, response) => {
    response.writeHead(503).end()
    ending.abort('SIGINT')
  })
  await expect(untilReady(service, { deadlineMs: 10_000, signal: ending.signal })).rejects.toBeDefined()
})
