// The entry for pages that show values and have no rooms: about half the size.
import { createClient } from './client.js'

export { TokenRefused } from './connection/auth.js'
export { KeycastError } from './errors.js'

/**
 * As `connect` of the whole library, but for rooms.
 *
 * @param {string | URL} url of a gateway's WebSocket, such as `wss://example.com/ws`; in a page also `/ws`
 * @param {import('./client.js').ConnectOptions} [options]
 * @throws {TypeError} where the URL is not that of a WebSocket, or there is no WebSocket
 */
export const connect = (url, options) => createClient(url, options)
