import { createServer } from 'node:http'
import { createAsker } from './ask.js'
import { createConnections } from './connections.js'

/** @type {(() => void)[]} */
let cleanups = []
afterEach(() => {
  for (const cleanup of cleanups) cleanup()
  cleanups = []
})

/** @param {import('node:http').RequestListener} handler */
async function setup(handler) {
  /** @type {import('node:http').IncomingMessage[]} */
  const requests = []
  let connections = 0
  const server = createServer((request, response) => {
    requests.push(request)
    handler(request, response)
  })
  server.on('connection', () => connections++)
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const clientConnections = createConnections()
  const asker = createAsker({ connections: clientConnections })
  cleanups.push(() => {
    clientConnections.close()
    server.close()
    server.closeAllConnections()
  })
  return {
    requests,
    connections: () => connections,
    /** @param {Partial<import('./ask.js').Lease>} [changes] */
    ask: changes =>
      asker.ask({
        type: 'lease',
        lease: 1,
        key: 'doc:1 x',
        url: `http://127.0.0.1:${port}/rights/1`,
        headers: { authorization: 'Bearer ann' },
        timeoutMs: 5_000,
        bytesMax: 0,
        delta: false,
        statusOf: 'HEAD',
        ...changes,
      }),
  }
}

test.each(/** @type {const} */ (['HEAD', 'GET']))(
  '%s brings the status, over connections that are kept',
  async statusOf => {
    const { ask, requests, connections } = await setup((_, response) =>
      response.writeHead(403, { 'content-length': 2 }).end('no'),
    )
    expect(await ask({ statusOf })).toMatchObject({ kind: 'status', status: 403 })
    expect(requests[0].method).toBe(statusOf)
    expect(requests[0].headers).toMatchObject({ authorization: 'Bearer ann', 'user-agent': 'keycast-fetcher' })
    for (let i = 0; i < 9; i++) await ask({ statusOf })
    expect(connections()).toBeLessThan(4)
  },
)

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
