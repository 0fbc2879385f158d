// A backend that a test scripts: what each path answers, and how it misbehaves. It records every request.
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { atEnd } from './cleanup.ts'
import { within } from './deadline.ts'

/**
 * @typedef {import('node:http').IncomingMessage} Request
 * @typedef {import('node:http').ServerResponse} Response
 * @typedef {(request: Request, response: Response) => unknown} Handler
 * @typedef {{ path: string, headers: import('node:http').IncomingHttpHeaders, remotePort: number, at: number, method:
 *   string }} Asked
 * @typedef {Awaited<ReturnType<typeof startBackend>>} Backend
 */

/**
 * A document of a given size and revision; two revisions differ in a small part.
 *
 * @param {number} revision
 * @param {number} [bytes]
 */
export function documentOf(revision, bytes = 200) {
  const head = `{"revision":${revision},"filler":"`
  return `${head}${'x'.repeat(Math.max(0, bytes - head.length - 2))}"}`
}

/**
 * @param {number} [port] 0 for any free one
 */
export async function startBackend(port = 0) {
  /** @type {Map<string, Handler>} */
  const handlers = new Map()
  /** @type {Asked[]} */
  const asked = []
  /** @type {Set<() => void>} */
  const waiters = new Set()
  /** @type {Handler | undefined} */
  let fault

  const server = createServer((request, response) => {
    const path = request.url ?? ''
    const { headers, method = '' } = request
    asked.push({ path, headers, method, remotePort: request.socket.remotePort ?? 0, at: performance.now() })
    const handler = fault ?? handlers.get(path) ?? answers.status(404)
    handler(request, response)
    for (const wake of waiters) wake()
  })
  server.keepAliveTimeout = 60_000
  /** @param {number} port */
  const listen = port =>
    new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => resolve(undefined))
    })
  const stop = () => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  }
  await listen(port)
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  atEnd(stop)

  return {
    port: address.port,
    origin: `http://127.0.0.1:${address.port}`,
    asked,

    /** @param {string} path */
    askedFor: path => asked.filter(request => request.path === path),

    /**
     * Sets the answer of a path from now on.
     *
     * @param {string} path
     * @param {Handler} handler
     */
    on(path, handler) {
      handlers.set(path, handler)
    },

    /**
     * Sets the answer of every path; `undefined` when the backend is well again.
     *
     * @param {Handler | undefined} handler
     */
    failWith(handler) {
      fault = handler
    },

    /** Takes the backend down: connections are cut, new ones refused. */
    down: stop,

    /** Brings it back on the same port. */
    up: () => listen(address.port),

    /**
     * Waits until the requests so far satisfy a condition.
     *
     * @param {(asked: Asked[]) => boolean} condition
     * @param {string} what the condition, for the error
     */
    async until(condition, what) {
      /** @type {() => void} */
      let wake = () => {}
      const met = new Promise(resolve => {
        wake = () => condition(asked) && resolve(undefined)
        waiters.add(wake)
        wake()
      })
      await within(met, what).finally(() => waiters.delete(wake))
    },
  }
}

/** Answers to script a backend with. */
export const answers = {
  /**
   * JSON with an ETag, answered with 304 where the asker holds it.
   *
   * @param {string | Buffer} body
   * @param {Record<string, string>} [headers]
   * @returns {Handler}
   */
  json: (body, headers = {}) => {
    const etag = `"${createHash('sha1').update(body).digest('hex')}"`
    return (request, response) => {
      if (request.headers['if-none-match'] === etag) return response.writeHead(304, { etag }).end()
      return response.writeHead(200, { 'content-type': 'application/json', etag, ...headers }).end(body)
    }
  },

  /** @param {Buffer | string} body @param {string} contentType @returns {Handler} */
  content: (body, contentType) => (_, response) => response.writeHead(200, { 'content-type': contentType }).end(body),

  /** @param {number} status @param {Record<string, string>} [headers] @returns {Handler} */
  status:
    (status, headers = {}) =>
    (_, response) =>
      response.writeHead(status, headers).end('{"not":"the content"}'),

  /** Takes the request and never answers. @returns {Handler} */
  silence: () => () => {},

  /**
   * Sends headers at once and then a byte at a time, for longer than anybody waits.
   *
   * @param {string} body
   * @param {number} everyMs
   * @returns {Handler}
   */
  drip: (body, everyMs) => (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    let sent = 0
    const timer = setInterval(() => {
      response.write(body[sent++])
      if (sent === body.length) response.end()
    }, everyMs)
    response.on('close', () => clearInterval(timer))
  },

  /** @param {() => number} delayMs @param {Handler} then @returns {Handler} */
  slowly: (delayMs, then) => (request, response) => {
    const timer = setTimeout(() => then(request, response), delayMs())
    response.on('close', () => clearTimeout(timer))
  },

  /** Promises more bytes than it sends, and cuts the connection. @param {string} body @returns {Handler} */
  cutShort: body => (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(body.length) })
    response.write(body.slice(0, body.length / 2), () => response.destroy())
  },
}

/**
 * A handler that holds every request until told, so that a test decides what is under way.
 *
 * @param {Handler} then answers a released request
 */
export function createGate(then) {
  /** @type {(() => void)[]} */
  const held = []
  let open = false
  return {
    /** @param {Request} request @param {Response} response */
    handler(request, response) {
      if (open) then(request, response)
      else held.push(() => then(request, response))
    },
    /** The number of requests that are held. */
    held: () => held.length,
    /** Lets the oldest held request be answered. */
    releaseOne: () => held.shift()?.(),
    /** Lets all go, and everything that comes later. */
    open() {
      open = true
      for (const release of held.splice(0)) release()
    },
  }
}
