// Makes a whole client: values, and rooms beside them.
import { createClient } from './client.js'
import { createClientRooms } from './rooms/rooms.js'

/**
 * @typedef {ReturnType<typeof connect>} Keycast
 */

/**
 * Opens a connection that returns by itself until it is closed.
 *
 * @param {string | URL} url the address of a gateway's WebSocket, such as `wss://example.com/ws`; in a page also `/ws`
 * @param {import('./client.js').ConnectOptions} [options]
 * @throws {TypeError} if the URL is not that of a WebSocket, or there is no WebSocket
 */
export function connect(url, options) {
  /** @type {ReturnType<typeof createClientRooms>} */
  let rooms
  const client = createClient(url, options, deps => {
    rooms = createClientRooms(deps)
    return rooms
  })
  const { value } = client
  return Object.assign(client, {
    /** @type {typeof value} */
    value(key, order) {
      const handle = value(key, order)
      rooms.wantedAsValue(key)
      return handle
    },

    /**
     * Follows a room: every message, in order, once. All handles of a room share one subscription.
     *
     * @template [T=any]
     * @param {string} key
     * @param {import('./rooms/room.js').RoomOptions} [options] where the stream starts
     * @returns {import('./rooms/handle.js').RoomHandle<T>} close it when it is no longer of use
     * @throws {TypeError} if `last` is not 0 to 500, or `after` is no position
     */
    room: (key, options) => rooms.room(key, options),
  })
}
