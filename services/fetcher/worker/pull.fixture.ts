// A backend on a free port and a puller that asks it, for the tests of pull.ts.
import { createServer } from 'node:http'
import { createConnections } from './http/connections.ts'
import { createPuller } from './pull.ts'

/**
 * @typedef {import('node:http').RequestListener} RequestListener
 * @typedef {import('../work/messages.ts').Lease} Lease
 */

/** @type {(() => void)[]} */
let cleanups = []
afterEach(() => {
  for (const cleanup of cleanups) cleanup()
  cleanups = []
})

/** Secrets that no result may repeat. */
export const secret = 'Bearer of-a-secret'

/** A backend that counts what it is asked, and a puller; both end with the test. @param {RequestListener} handler */
export async function setup(handler) {
  /** @type {import('node:http').IncomingMessage[]} */
  const requests = []
  const server = createServer((request, response) => {
    requests.push(request)
    handler(request, response)
  })
  let connections = 0
  server.on('connection', () => connections++)
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const clientConnections = createConnections()
  const puller = createPuller({ connections: clientConnections })
  cleanups.push(() => {
    clientConnections.close()
    server.close()
    server.closeAllConnections()
  })
  return {
    server,
    requests,
    connections: () => connections,
    /** @param {Partial<Lease>} [changes] */
    pull: changes => puller.pull(lease({ url: `http://127.0.0.1:${port}/conversations/1`, ...changes })),
  }
}

/** @param {Partial<Lease>} changes @returns {Lease} */
export function lease(changes) {
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

/** @param {number} status @param {Record<string, string>} [headers] @param {string | Buffer} [body] @returns {RequestListener} */
export const answering =
  (status, headers = {}, body = '') =>
  (_, response) => {
    response.writeHead(status, headers).end(body)
  }

export const json = { 'content-type': 'application/json' }
