// The entry for applications with many tabs: all tabs of a user share one connection, through a SharedWorker.
import { connect as connectAlone } from '../connect.js'
import { createTab } from './tab.js'

export { TokenRefused } from '../connection/auth.js'
export { KeycastError } from '../errors.js'

/**
 * `connect` with one connection for all tabs of a browser that name the same gateway and user. Where the browser has no
 * SharedWorker, or no locks, a tab has a connection of its own.
 *
 * @param {string | URL} url the address of a gateway's WebSocket, such as `wss://example.com/ws`; in a page also `/ws`
 * @param {Pick<import('../client.js').ConnectOptions, 'token' | 'keepMs' | 'keepForbidden'> & { user?: string }} [options]
 *   `user`: who is signed in, where there is a token or a cookie; tabs of different users share nothing
 * @returns {import('../connect.js').Keycast}
 */
export function connect(url, { user = '', ...options } = {}) {
  const { SharedWorker, navigator, location } = /** @type {any} */ (globalThis)
  if (!SharedWorker || !navigator?.locks) return connectAlone(url, options)
  const { href } = new URL(url, location.href)
  const reach = () =>
    new SharedWorker(new URL('./worker.js', import.meta.url), { type: 'module', name: `keycast ${href} ${user}` }).port
  return /** @type {any} */ (createTab({ reach, locks: navigator.locks, url: href, options }))
}
