// The entry for pages that show values and have no rooms: about half the size.
import { createClient } from './client.js'

export { TokenRefused } from './connection/auth.js'
export { KeycastError } from './errors.js'

/**
 * `connect` of the whole library, without rooms.
 *
 * @param {string | URL} url the address of a gateway's WebSocket, such as `wss://example.com/ws`; in a page also `/ws`
 * @param {import('./client.js').ConnectOptions} [options]
 * @throws {TypeError} if the URL is not that of a WebSocket, or there is no WebSocket
 */
export const connect = (url, options) => createClient(url, options)
