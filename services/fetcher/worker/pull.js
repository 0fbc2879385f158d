// One lease, one GET, one result, whatever happens. A worker retries nothing: the primary does.
import { Axios } from 'axios'
import { createConnections } from './connections.js'
import { createExchangeAdapter, Exchange, ExchangeError } from './exchange.js'
import { failureOfHead, resultOf } from './response.js'

/**
 * @typedef {import('../work/messages.js').Lease} Lease
 * @typedef {import('../work/messages.js').FailedResult} FailedResult
 * @typedef {import('./response.js').Pulled} Pulled
 * @typedef {ReturnType<typeof createPuller>} Puller
 */

/**
 * @param {object} options
 * @param {number} options.socketsMax connections to one origin. As many as there may be pulls at once: waiting for a
 *   connection would use up a pull's deadline
 * @param {() => number} [options.now] milliseconds since 1970
 */
export function createPuller({ socketsMax, now = Date.now }) {
  const connections = createConnections({ socketsMax })
  // Not `axios.create`, whose defaults are merged anew for each request and say nothing here.
  const client = new Axios({ adapter: createExchangeAdapter(connections), validateStatus: null })

  return {
    /**
     * @param {Lease} lease
     * @returns {Promise<Pulled>} never rejects for what a backend or a network does
     */
    async pull(lease) {
      let response
      try {
        const { url, timeoutMs, bytesMax } = lease
        const config = { exchange: new Exchange({ url, headers: headersOf(lease), timeoutMs, bytesMax }) }
        response = await client.request(/** @type {import('axios').AxiosRequestConfig} */ (config))
      } catch (error) {
        return { result: failureOf(lease, error, now()) }
      }
      const headers = /** @type {import('./freshness.js').Headers} */ (response.headers)
      return resultOf(lease, { status: response.status, headers, body: response.data }, now())
    },

    /** Ends all connections. Pulls under way fail. */
    close() {
      connections.close()
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
    // still understood: exchange.js inflates what comes, and counts it inflated.
    'accept-encoding': 'identity',
  }
  // One of them: a backend that gets both could answer by the coarser (RFC 9110 section 13.2.2).
  if (etag !== undefined) sent['if-none-match'] = etag
  else if (lastModified !== undefined) sent['if-modified-since'] = lastModified
  return sent
}

/**
 * The meaning of an exchange that did not end with a whole response. Messages reach clients: nothing of the error but
 * its code goes into them, for Node's errors carry the backend's address.
 *
 * @param {Lease} lease
 * @param {unknown} error
 * @param {number} now
 * @returns {FailedResult}
 */
function failureOf({ timeoutMs, bytesMax }, error, now) {
  // What Node or axios throws before anything is sent: a header of the namespace that no request may have.
  const { why, code, head } = error instanceof ExchangeError ? error : notSent(error)
  // The head may have come whole before the body failed, and mostly it says enough: a 404 with a huge page is a 404.
  const byHead = head && failureOfHead(head.status, head.headers, now)
  if (byHead) return byHead

  const status = head?.status
  switch (why) {
    case 'deadline':
      return { kind: 'failed', code: 'backend_timeout', message: `no whole answer within ${timeoutMs} ms`, status }
    case 'too_large':
      return { kind: 'failed', code: 'too_large', message: `the content is over ${bytesMax} bytes`, status }
    case 'encoding':
      return { kind: 'failed', code: 'invalid_content', message: 'the compressed content is damaged', status }
    case 'connection': {
      const message = head ? 'the connection failed within the body' : `the connection failed (${code})`
      return { kind: 'failed', code: 'backend_unreachable', message, status }
    }
  }
}

/** @param {unknown} error */
function notSent(error) {
  return new ExchangeError('connection', { code: /** @type {{ code?: string }} */ (error).code })
}
