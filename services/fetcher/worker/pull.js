// One lease, one GET, one result, whatever happens. A worker retries nothing: the primary does.
import http from 'node:http'
import https from 'node:https'
import axios from 'axios'
import { failureOfHead, resultOf } from './response.js'

/**
 * @typedef {import('../work/messages.js').Lease} Lease
 * @typedef {import('../work/messages.js').FailedResult} FailedResult
 * @typedef {import('./response.js').Pulled} Pulled
 * @typedef {ReturnType<typeof createPuller>} Puller
 */

/**
 * A request on a connection that the server is just giving up fails. So an idle one is closed from this side first:
 * before the 2 s of gunicorn, the shortest in common use, and not on a whole second, where refreshes and servers'
 * timeouts meet. Having a timeout also makes Node's agents honour the one a server announces (`Keep-Alive: timeout=…`).
 */
export const IDLE_MS = 1_500

/** When TCP's own probes begin. axios sets 60 s for each request: with another figure here each costs two system calls. */
const PROBE_MS = 60_000

/**
 * @param {object} options
 * @param {number} options.socketsMax connections to one origin. As many as there may be pulls at once: waiting for a
 *   connection would use up a pull's deadline
 * @param {() => number} [options.now] milliseconds since 1970
 */
export function createPuller({ socketsMax, now = Date.now }) {
  const agentOptions = {
    keepAlive: true,
    keepAliveMsecs: PROBE_MS,
    maxSockets: socketsMax,
    maxFreeSockets: socketsMax,
    timeout: IDLE_MS,
  }
  const agents = { httpAgent: new http.Agent(agentOptions), httpsAgent: new https.Agent(agentOptions) }
  const client = axios.create({
    ...agents,
    adapter: 'http',
    proxy: false, // not even by the environment's HTTP_PROXY
    maxRedirects: 0,
    responseType: 'arraybuffer',
    transformResponse: body => body,
    validateStatus: null,
  })

  return {
    /**
     * @param {Lease} lease
     * @returns {Promise<Pulled>} never rejects for what a backend or a network does
     */
    async pull(lease) {
      const controller = new AbortController()
      // Over the whole exchange. The client's own `timeout` starts afresh with each byte of a dripping body.
      // Timers run before sockets are read: a process that stood still first reads what came meanwhile.
      const deadline = setTimeout(() => setImmediate(() => controller.abort()), lease.timeoutMs)
      let response
      try {
        // Not `get`, which merges two configurations before this merges two.
        response = await client.request({
          method: 'get',
          url: lease.url,
          headers: headersOf(lease),
          signal: controller.signal,
          maxContentLength: lease.bytesMax,
        })
      } catch (error) {
        return { result: failureOf(lease, error, now()) }
      } finally {
        clearTimeout(deadline)
      }
      const headers = /** @type {import('./freshness.js').Headers} */ (response.headers)
      return resultOf(lease, { status: response.status, headers, body: response.data }, now())
    },

    /** Ends all connections. Pulls under way fail. */
    close() {
      agents.httpAgent.destroy()
      agents.httpsAgent.destroy()
    },
  }
}

/** @param {Lease} lease */
function headersOf({ headers, etag, lastModified }) {
  /** @type {Record<string, string>} */
  const sent = {
    accept: 'application/json, */*;q=0.5',
    'user-agent': 'keycast-fetcher',
    ...headers,
    // Compressed bytes would have to be inflated before they can be hashed. A backend that has nothing else is
    // still understood: the client inflates what comes, and counts it against maxContentLength inflated.
    'accept-encoding': 'identity',
  }
  // One of them: a backend that gets both could answer by the coarser (RFC 9110 section 13.2.2).
  if (etag !== undefined) sent['if-none-match'] = etag
  else if (lastModified !== undefined) sent['if-modified-since'] = lastModified
  return sent
}

/**
 * The meaning of an exchange that did not end with a whole response. Messages reach clients: nothing of the error but
 * its code goes into them, for axios's errors carry the request, headers included, and Node's the backend's address.
 *
 * @param {Lease} lease
 * @param {any} error
 * @param {number} now
 * @returns {FailedResult}
 */
function failureOf({ timeoutMs, bytesMax }, error, now) {
  // The head may have come whole before the body failed, and mostly it says enough: a 404 with a huge page is a 404.
  const head = headOf(error)
  const byHead = head && failureOfHead(head.status, head.headers, now)
  if (byHead) return byHead

  const status = head?.status
  if (axios.isCancel(error)) {
    return { kind: 'failed', code: 'backend_timeout', message: `no whole answer within ${timeoutMs} ms`, status }
  }
  if (isTooLarge(error)) {
    return { kind: 'failed', code: 'too_large', message: `the content is over ${bytesMax} bytes`, status }
  }
  if (isBadEncoding(error)) {
    return { kind: 'failed', code: 'invalid_content', message: 'the compressed content is damaged', status }
  }
  // Within a body the code tells little: axios has put its own in place of the connection's.
  const message = head ? 'the connection failed within the body' : `the connection failed (${error.code})`
  return { kind: 'failed', code: 'backend_unreachable', message, status }
}

/** Only some of axios's errors bring the response; Node's request knows it in any case. @param {any} error */
function headOf({ response, request }) {
  if (response) return { status: response.status, headers: response.headers }
  return request?.res ? { status: request.res.statusCode, headers: request.res.headers } : undefined
}

/** axios gives this and a body cut short the same code. @param {Error} error */
function isTooLarge({ message }) {
  return message.startsWith('maxContentLength')
}

/** zlib's and brotli's codes. @param {{ code?: string }} error */
function isBadEncoding({ code = '' }) {
  return /^(?:Z_|ERR__ERROR_|ERR_BROTLI)/.test(code)
}
