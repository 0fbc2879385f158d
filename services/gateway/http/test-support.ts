// Serves an app on a free port for tests, and asks it as a client does: over a socket, the path as it is written.
import { once } from 'node:events'
import { request } from 'node:http'
import { buffer } from 'node:stream/consumers'

/** @typedef {{ method?: string, headers?: Record<string, string>, body?: string }} Asked */
/** @typedef {{ status: number, headers: import('node:http').IncomingHttpHeaders, body: Buffer, json: () => any }} Answered */

/** @type {import('fastify').FastifyInstance[]} */
const served = []

/**
 * @param {import('fastify').FastifyInstance} app
 * @returns {Promise<(path: string, asked?: Asked) => Promise<Answered>>}
 */
export async function serve(app) {
  served.push(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = /** @type {import('node:net').AddressInfo} */ (app.server.address())
  return async (path, { method = 'GET', headers = {}, body } = {}) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false })
    sent.end(body)
    const [response] = /** @type {[import('node:http').IncomingMessage]} */ (await once(sent, 'response'))
    const received = await buffer(response)
    return {
      status: /** @type {number} */ (response.statusCode),
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
