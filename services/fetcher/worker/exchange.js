// axios's way to the network: one GET and its whole response. axios's own adapter does much that a fetcher never needs
// (forms, redirects, proxies, progress), at over twice the CPU time: docs/decisions, 14.
import { urlToHttpOptions } from 'node:url'
import { promisify } from 'node:util'
import zlib from 'node:zlib'

/**
 * @typedef {import('./connections.js').Connections} Connections
 * @typedef {Record<string, string | undefined>} Headers
 *
 * What is asked. A class of its own: axios copies plain objects of its configuration property by property, for each request.
 */
export class Exchange {
  /**
   * @param {object} what
   * @param {string} what.url absolute
   * @param {Record<string, string>} what.headers
   * @param {number} what.timeoutMs for the whole exchange
   * @param {number} what.bytesMax of the body, inflated or not
   */
  constructor({ url, headers, timeoutMs, bytesMax }) {
    this.url = url
    this.headers = headers
    this.timeoutMs = timeoutMs
    this.bytesMax = bytesMax
  }
}

/**
 * Why there is no whole response. `head`: of the response, where that much came. It holds nothing of the request, whose
 * headers are secrets.
 */
export class ExchangeError extends Error {
  /**
   * @param {'deadline' | 'too_large' | 'encoding' | 'connection'} why
   * @param {{ code?: string, head?: { status: number, headers: Headers } }} [details] `code`: Node's
   */
  constructor(why, { code, head } = {}) {
    super(why)
    this.name = 'ExchangeError'
    this.why = why
    this.code = code
    this.head = head
  }
}

/** @type {Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>} */
const inflaters = {
  gzip: promisify(zlib.gunzip),
  'x-gzip': promisify(zlib.gunzip),
  br: promisify(zlib.brotliDecompress),
  // Many servers send it without zlib's header (RFC 9110 section 8.4.1.2).
  deflate: (bytes, options) =>
    (bytes[0] & 0x0f) === 8 ? promisify(zlib.inflate)(bytes, options) : promisify(zlib.inflateRaw)(bytes, options),
}

/** @param {Connections} connections */
export function createExchangeAdapter(connections) {
  /** What Node needs to know of an origin: parsing it each time would cost as much as the rest of a request's head. */
  const origins = /** @type {Map<string, import('node:http').RequestOptions>} */ (new Map())

  /** @param {string} url @returns {{ origin: import('node:http').RequestOptions, path: string }} */
  function split(url) {
    const pathAt = url.indexOf('/', url.indexOf('//') + 2)
    const name = url.slice(0, pathAt)
    let origin = origins.get(name)
    if (!origin) {
      const { protocol, hostname, port } = urlToHttpOptions(new URL(name))
      origin = { protocol, hostname, port }
      origins.set(name, origin)
    }
    return { origin, path: url.slice(pathAt) }
  }

  /** @param {any} config axios's, with the exchange @returns {Promise<import('axios').AxiosResponse<Buffer>>} */
  return function exchangeAdapter(config) {
    /** @type {Exchange} */
    const { url, headers, timeoutMs, bytesMax } = config.exchange
    return new Promise((resolve, reject) => {
      const { origin, path } = split(url)
      const { request, agent } = connections.over(origin.protocol)
      /** @type {{ status: number, headers: Headers } | undefined} */
      let head
      const sent = request({ ...origin, path, method: 'GET', headers, agent }, onResponse)
      sent.on('error', (/** @type {NodeJS.ErrnoException} */ { code }) => fail('connection', code))
      sent.end()
      // Over the whole exchange, and not from byte to byte: a body may drip.
      // Timers run before sockets are read: a process that stood still first reads what came meanwhile.
      const deadline = setTimeout(() => setImmediate(fail, 'deadline'), timeoutMs)

      /** @param {import('node:http').IncomingMessage} response */
      function onResponse(response) {
        head = {
          status: /** @type {number} */ (response.statusCode),
          headers: /** @type {Headers} */ (response.headers),
        }
        connections.note(response)
        /** @type {Buffer[]} */
        const chunks = []
        let bytes = 0
        response.on('data', chunk => {
          bytes += chunk.length
          if (bytes > bytesMax) fail('too_large')
          else chunks.push(chunk)
        })
        response.on('error', (/** @type {NodeJS.ErrnoException} */ { code }) => fail('connection', code))
        response.on('end', () => finish(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)))
      }

      /** @param {Buffer} body as it was sent */
      function finish(body) {
        const { status, headers } = /** @type {{ status: number, headers: Headers }} */ (head)
        const inflate = inflaters[headers['content-encoding']?.toLowerCase() ?? '']
        if (!inflate) return done(status, headers, body)
        const inflated = body.length > 0 ? inflate(body, { maxOutputLength: bytesMax }) : Promise.resolve(body)
        inflated.then(
          data => done(status, { ...headers, 'content-encoding': undefined }, data),
          ({ code }) => fail(code === 'ERR_BUFFER_TOO_LARGE' ? 'too_large' : 'encoding'),
        )
      }

      /** @param {number} status @param {Headers} headers @param {Buffer} data */
      function done(status, headers, data) {
        clearTimeout(deadline)
        resolve(/** @type {any} */ ({ status, headers, data, config }))
      }

      /** @param {ExchangeError['why']} why @param {string} [code] */
      function fail(why, code) {
        clearTimeout(deadline)
        reject(new ExchangeError(why, { code, head })) // nothing happens where it was resolved before
        if (why === 'deadline' || why === 'too_large') sent.destroy()
      }
    })
  }
}
