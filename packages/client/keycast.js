// The entry: an application imports this file, and reaches everything else through it.
export { connect } from './keycast/connect.js'
export { TokenRefused } from './keycast/connection/auth.js'
export { KeycastError } from './keycast/errors.js'

/**
 * @typedef {import('./keycast/connect.js').Keycast} Keycast
 * @typedef {import('./keycast/connect.js').ConnectOptions} ConnectOptions
 * @typedef {import('./keycast/connection/auth.js').Token} Token
 * @typedef {import('./keycast/connection/connection.js').ConnectionState} ConnectionState
 * @typedef {import('./keycast/environment.js').Environment} Environment
 * @typedef {import('./keycast/errors.js').KeycastErrorCode} KeycastErrorCode
 * @typedef {import('./keycast/values/entry.js').Stale} Stale
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast/values/entry.js').ValueState<T>} ValueState
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast/values/handle.js').ValueHandle<T>} ValueHandle
 */
