import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { realWorld } from '@keycast/service'
import type { Lease } from '../worker-messages.ts'
import { createAsker } from './ask.ts'
import { createConnections } from './http/connections.ts'

let cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups) cleanup()
  cleanups = []
})

async function setup(handler: RequestListener) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    handler(request, response)
  })
  cleanups.push(() => server.closeAllConnections())
  return { requests, ...(await askerOf(server)) }
}

async function askerOf(server: Server) {
  let connections = 0
  server.on('connection', () => connections++)
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = server.address() as AddressInfo
  const clientConnections = createConnections(realWorld)
  const asker = createAsker({ ...realWorld, connections: clientConnections })
  cleanups.push(() => {
    clientConnections.close()
    server.close()
  })
  return {
    connections: () => connections,
    ask: async ({ path = '/rights/1', ...changes }: Partial<Lease> & { path?: string } = {}, body?: Buffer) => {
      const pulled = await asker.ask(
        {
          type: 'lease',
          lease: 1,
          key: 'doc:1 x',
          url: `http://127.0.0.1:${port}${path}`,
          headers: { authorization: 'Bearer ann' },
          timeoutMs: 5_000,
          bytesMax: 0,
          delta: false,
          statusOf: 'HEAD',
          ...changes,
        },
        body,
      )
      return { ...pulled.result, ...(pulled.body && { body: String(pulled.body) }) }
    },
  }
}

test.each(['HEAD', 'GET'] as const)('%s brings the status, over connections that are kept', async statusOf => {
  const { ask, requests, connections } = await setup((_, response) =>
    response.writeHead(403, { 'content-length': 0 }).end(),
  )
  expect(await ask({ statusOf })).toMatchObject({ kind: 'status', status: 403 })
  expect(requests[0].method).toBe(statusOf)
  expect(requests[0].headers).toMatchObject({ authorization: 'Bearer ann', 'user-agent': 'keycast-fetcher' })
  for (let i = 0; i < 9; i++) await ask({ statusOf })
  expect(connections()).toBeLessThan(4)
})

const forbidden = 'HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n'

/**
 * A server that sends the body of a HEAD, too, and so late that its connection carries the next question.
 *
 * @param head of each response but those to `/secret`
 */
function setupLateBody(head: string) {
  const server = createTcpServer(socket => {
    let owed = ''
    socket.on('error', () => {})
    socket.on('data', request => {
      socket.write(owed + (String(request).includes('/secret') ? forbidden : head))
      owed = 'HTTP/1.1 204 No Content\r\n\r\n'
    })
  })
  return askerOf(server)
}

test.each([
  'HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 27\r\nConnection: keep-alive\r\n\r\n',
  'HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
  'HTTP/1.1 404 Not Found\r\nContent-Length: 27\r\n\r\n',
])('the body that a server sends with HEAD as well (%j) is not the answer to the next question', async head => {
  const { ask } = await setupLateBody(head)

  expect(await ask()).toMatchObject({ status: Number(head.split(' ')[1]) })
  expect(await ask({ path: '/secret' })).toMatchObject({ kind: 'status', status: 403 })
})

test.each([{}, { 'content-length': '0' }])('a 204 to HEAD (%j) keeps its connection', async headers => {
  const { ask, connections } = await setup((_, response) => response.writeHead(204, headers).end())

  for (let i = 0; i < 9; i++) expect(await ask()).toMatchObject({ status: 204 })

  expect(connections()).toBeLessThan(4)
})

test('a redirect is not followed, and Retry-After is passed on', async () => {
  const { ask, requests } = await setup((_, response) =>
    response.writeHead(302, { location: '/', 'retry-after': '3' }).end(),
  )
  expect(await ask()).toEqual({ kind: 'status', status: 302, retryAfterMs: 3_000 })
  expect(requests).toHaveLength(1)
})

test('a body without end is not read', async () => {
  const closed = new Promise(resolve => {
    void setup((request, response) => {
      request.on('close', resolve)
      const more = () => {
        while (response.write(Buffer.alloc(65_536)));
      }
      response.on('drain', more)
      more()
    }).then(async ({ ask }) => expect(await ask({ statusOf: 'GET' })).toMatchObject({ status: 200 }))
  })
  await closed
})

test('a backend that does not answer in time has not said anything', async () => {
  const { ask } = await setup(() => {})
  expect(await ask({ timeoutMs: 50 })).toMatchObject({ kind: 'failed', code: 'backend_timeout' })
})

test('the status stands though the body does not end in time', async () => {
  const { ask } = await setup((_, response) => response.writeHead(403).write('n'))
  expect(await ask({ statusOf: 'GET', timeoutMs: 200 })).toMatchObject({ kind: 'status', status: 403 })
})

test('a token that no header may hold is a failure, and nothing is asked', async () => {
  const { ask, requests } = await setup((_, response) => response.end())
  expect(await ask({ headers: { authorization: 'Bearer a\nb' } })).toMatchObject({ code: 'backend_unreachable' })
  expect(requests).toHaveLength(0)
})

test('a connection that fails tells neither address nor token', async () => {
  const { ask } = await setup(() => {})
  const result = await ask({ url: 'http://127.0.0.1:1/rights/1' })
  expect(result).toMatchObject({ kind: 'failed', code: 'backend_unreachable' })
  expect(JSON.stringify(result)).not.toMatch(/127\.0\.0\.1|ann/)
})

test('POST sends its body as JSON, and brings the body of the response', async () => {
  let received = ''
  const { ask, requests } = await setup(async (request, response) => {
    for await (const chunk of request) received += chunk
    response.writeHead(422, { 'content-type': 'application/json' }).end('{"reason":"x"}')
  })
  const result = await ask(
    { statusOf: 'POST', hasBody: true, headers: { accept: 'text/html' } },
    Buffer.from('{"a":1}'),
  )
  expect(result).toMatchObject({ kind: 'status', status: 422, hasBody: true, body: '{"reason":"x"}' })
  expect([requests[0].method, received]).toEqual(['POST', '{"a":1}'])
  expect(requests[0].headers).toMatchObject({ 'content-type': 'application/json', accept: 'application/json' })
})

test('POST whose response breaks off has a status, and no body', async () => {
  const { ask } = await setup((_, response) => {
    response.writeHead(200, { 'content-length': 100 })
    response.write('{"data":1', () => response.destroy())
  })
  expect(await ask({ statusOf: 'POST', hasBody: true }, Buffer.from('{}'))).toEqual({ kind: 'status', status: 200 })
})
