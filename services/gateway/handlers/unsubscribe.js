// Ends a session's interest in keys. Keys it never subscribed to are none the less ended: the request is idempotent.

/**
 * @typedef {import('@keycast/protocol').Unsubscribe} Unsubscribe
 * @typedef {import('../sessions/session.js').Session} Session
 */

/** @param {Pick<import('./index.js').HandlerDeps, 'subscriptions' | 'outbox'>} deps */
export const createUnsubscribe = ({ subscriptions, outbox }) =>
  /**
   * @param {Session} session
   * @param {Unsubscribe} message
   */
  function unsubscribe(session, { id, keys }) {
    for (const key of keys) subscriptions.remove(session, key)
    outbox.send(session, { type: 'ok', id })
  }
