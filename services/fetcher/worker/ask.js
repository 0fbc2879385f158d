// One lease whose status alone is wanted: asks a backend whether a viewer may read. The body is thrown away.
import http from 'node:http'
import https from 'node:https'
import { IDLE_MS } from './connections.js'
import { retryAfterMsOf } from './freshness.js'

/**
 * @typedef {import('../work/messages.js').Lease} Lease
 * @typedef {import('../work/messages.js').Result} Result
 * @typedef {ReturnType<typeof createAsker>} Asker
 */

/** A body up to this is read, so that its connection serves the next request; with a longer one it is closed. */
const BODY_BYTES_MAX = 65_536

/**
 * @param {object} options
 * @param {number} options.socketsMax connections to one origin, beside those of fetches
 * @param {() => number} [options.now] milliseconds since 1970
 */
export function createAsker({ socketsMax, now = Date.now }) {
  const agentOptions = { keepAlive: true, maxSockets: socketsMax, maxFreeSockets: socketsMax, timeout: IDLE_MS }
  const agents = { http: new http.Agent(agentOptions), https: new https.Agent(agentOptions) }

  return {
    /**
     * @param {Lease} lease
     * @returns {Promise<Result>} never rejects
     */
    ask({ url, headers, statusOf, timeoutMs }) {
      return new Promise(resolve => {
        const isSecure = url.startsWith('https:')
        const request = (isSecure ? https : http).request(url, {
          method: statusOf,
          agent: isSecure ? agents.https : agents.http,
          headers: { accept: '*/*', 'user-agent': 'keycast-fetcher', ...headers },
        })
        let isLate = false
        // Timers run before sockets are read: a process that stood still first reads what came meanwhile.
        const deadline = setTimeout(
          () =>
            setImmediate(() => {
              isLate = true
              request.destroy()
            }),
          timeoutMs,
        )
        request.on('response', response => {
          const headers = /** @type {import('./freshness.js').Headers} */ (response.headers)
          const status = /** @type {number} */ (response.statusCode)
          let bytes = 0
          response.on('data', chunk => {
            bytes += chunk.length
            if (bytes > BODY_BYTES_MAX) request.destroy()
          })
          // However the body ends, the status stands. Waited for, so that the connection serves the next request.
          response.on('error', () => {})
          response.on('close', () => resolve({ kind: 'status', status, retryAfterMs: retryAfterMsOf(headers, now()) }))
        })
        // Nothing of the error but its code: Node's messages name the backend's address.
        request.on('error', (/** @type {NodeJS.ErrnoException} */ { code }) =>
          resolve(failureOf(isLate, timeoutMs, code)),
        )
        request.on('close', () => clearTimeout(deadline))
        request.end()
      })
    },

    /** Ends all connections. */
    close() {
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}

/** @param {boolean} isLate @param {number} timeoutMs @param {string | undefined} code @returns {Result} */
function failureOf(isLate, timeoutMs, code) {
  if (isLate)
    return {
      kind: 'failed',
      code: 'backend_timeout',
      message: `the backend did not say within ${timeoutMs} ms whether this may be read`,
    }
  const message = `the connection failed (${code}) when the backend was asked whether this may be read`
  return { kind: 'failed', code: 'backend_unreachable', message }
}
