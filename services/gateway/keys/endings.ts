// Ends subscriptions, to values or to rooms: a session holds both in one map.

/**
 * @typedef {import('../sessions/session.ts').Session} Session
 * @typedef {ReturnType<typeof createEndings>} Endings
 */

/**
 * @param {object} deps
 * @param {Pick<import('./subscriptions.ts').Subscriptions, 'end'>} deps.subscriptions
 * @param {Pick<import('../rooms/rooms.ts').Rooms, 'end'>} deps.rooms
 */
export function createEndings({ subscriptions, rooms }) {
  /** @param {import('../sessions/session.ts').AnySubscription} subscription */
  function end(subscription) {
    if ('room' in subscription) rooms.end(subscription)
    else subscriptions.end(subscription)
  }

  return {
    /**
     * Ends a session's subscription to a key, if it has one: nothing of the key is written after.
     *
     * @param {Session} session
     * @param {string} key
     */
    remove(session, key) {
      const subscription = session.subscriptions.get(key)
      if (subscription) end(subscription)
    },

    /** @param {Session} session that ended */
    drop(session) {
      for (const subscription of session.subscriptions.values()) end(subscription)
    },
  }
}
