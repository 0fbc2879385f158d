// The entry for applications with many tabs: all tabs of a user share one connection, through a SharedWorker.
import { socketUrl } from '../client.js'
import { connect as connectAlone } from '../connect.js'
import { createAlone } from './alone.js'
import { LANGUAGE } from './messages.js'
import { createTab } from './tab.js'

export { TokenRefused } from '../connection/auth.js'
export { KeycastError } from '../errors.js'

/**
 * `connect` with one connection for all tabs of a browser that name the same gateway and user. Where the browser has no
 * SharedWorker, or no locks, or forbids them, a tab has a connection of its own.
 *
 * @param {string | URL} url the address of a gateway's WebSocket, such as `wss://example.com/ws`; in a page also `/ws`
 * @param {Pick<import('../client.js').ConnectOptions, 'token' | 'keepMs' | 'keepForbidden'> & { user?: string }} [options]
 *   `user`: who is signed in, where there is a token or a cookie; tabs of different users share nothing
 * @returns {import('../connect.js').Keycast}
 * @throws {TypeError} if the URL is not that of a WebSocket
 */
export function connect(url, { user = '', ...options } = {}) {
  const { SharedWorker, navigator } = /** @type {any} */ (globalThis)
  if (!SharedWorker || !navigator?.locks) return connectAlone(url, options)
  const href = socketUrl(url)
  /** @param {() => void} onError */
  const reach = onError => {
    const name = `keycast ${LANGUAGE} ${href} ${user}`
    const worker = new SharedWorker(new URL('./worker.js', import.meta.url), { type: 'module', name })
    worker.onerror = onError
    return worker.port
  }
  return /** @type {any} */ (createTab({ reach, locks: navigator.locks, alone: createAlone, url: href, options }))
}
