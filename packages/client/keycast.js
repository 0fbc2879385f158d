// The entry: an application imports this file, and reaches everything else through it.
export { connect } from './keycast/connect.js'
export { TokenRefused } from './keycast/connection/auth.js'
export { KeycastError } from './keycast/errors.js'

/**
 * @typedef {import('./keycast/connect.js').Keycast} Keycast
 * @typedef {import('./keycast/client.js').ConnectOptions} ConnectOptions
 * @typedef {import('./keycast/connection/auth.js').Token} Token
 * @typedef {import('./keycast/connection/connection.js').ConnectionState} ConnectionState
 * @typedef {import('./keycast/environment.js').Environment} Environment
 * @typedef {import('./keycast/errors.js').KeycastErrorCode} KeycastErrorCode
 * @typedef {import('./keycast/errors.js').Health} Health
 * @typedef {import('./keycast/values/entry.js').Stale} Stale
 * @typedef {import('./keycast/rooms/room.js').Position} Position
 * @typedef {import('./keycast/rooms/room.js').RoomOptions} RoomOptions
 * @typedef {import('./keycast/rooms/room.js').Gap} Gap
 * @typedef {import('./keycast/rooms/members.js').Member} Member
 * @typedef {import('./keycast/rooms/members.js').MembersState} MembersState
 * @typedef {import('./keycast/rooms/publishes.js').Published} Published
 * @typedef {import('./keycast/rooms/publishes.js').PublishOptions} PublishOptions
 * @typedef {import('./keycast/rooms/rooms.js').HistoryOptions} HistoryOptions
 * @typedef {import('./keycast/rooms/membership.js').Join} Join
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast/rooms/handle.js').RoomHandle<T>} RoomHandle
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast/rooms/room.js').RoomState<T>} RoomState
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast/rooms/room.js').Message<T>} Message
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast/rooms/room.js').PendingMessage<T>} PendingMessage
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast/rooms/rooms.js').History<T>} History
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast/values/entry.js').ValueState<T>} ValueState
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast/values/handle.js').ValueHandle<T>} ValueHandle
 */
