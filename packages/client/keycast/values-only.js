// The entry for pages that show values and have no rooms: about half the size.
import { createClient } from './client.js'

export { TokenRefused } from './connection/auth.js'
export { KeycastError } from './errors.js'

/**
 * `connect` of the whole library, without rooms.
 *
 * @type {(url: string | URL, options?: import('./client.js').ConnectOptions) => ReturnType<typeof createClient>}
 */
export const connect = createClient
