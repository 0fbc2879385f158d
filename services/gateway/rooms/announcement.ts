// The `subscribed` of the rooms that one request named: sent once it is known of each where its stream begins, or that this
// takes a while.

/**
 * @typedef {import('./room.ts').RoomSubscription} RoomSubscription
 * @typedef {import('../sessions/session.ts').Session} Session
 *
 * @typedef {object} Announcement
 * @property {Session} session
 * @property {import('@keycast/protocol').RequestId | undefined} id of the request
 * @property {number} unknown rooms of which nothing is known yet; one more until the whole request was read
 * @property {RoomSubscription[]} placed
 */

/**
 * @param {Session} session @param {Announcement['id']} id @param {number} [unknown]
 * @returns {Announcement}
 */
export function createAnnouncement(session, id, unknown = 1) {
  return { session, id, unknown, placed: [] }
}

/**
 * The entry of a room in `subscribed`: every message after its cursor follows.
 *
 * @param {RoomSubscription} subscription that is placed
 * @returns {import('@keycast/protocol').RoomSubscribed}
 */
export function subscribedTo({ room, cursor, placing }) {
  const { key, epoch = '', reached, oldest } = room
  // The client may have received some of these messages through another gateway already.
  const seq = Math.max(reached, cursor)
  return { key, epoch, seq, oldest, recovered: placing?.isRecovered ?? false, count: seq - cursor }
}
