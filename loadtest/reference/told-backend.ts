#!/usr/bin/env node
// An HTTP backend whose values are what it was last told: a PUT sets the content of its path.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const contents = new Map<string | undefined, Buffer>()

const server = createServer(async (request, response) => {
  if (request.method === 'PUT') {
    contents.set(request.url, Buffer.concat(await request.toArray()))
    response.writeHead(204).end()
    return
  }
  const content = contents.get(request.url)
  response.writeHead(content ? 200 : 404, { 'content-type': 'application/json' }).end(content)
})

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  console.log(JSON.stringify({ msg: 'listening', port }))
})
process.once('SIGTERM', () => process.exit(0))
