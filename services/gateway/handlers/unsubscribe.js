// Ends a session's subscriptions to keys. The request is idempotent: a key it was not subscribed to is no error.

/**
 * @typedef {import('@keycast/protocol').Unsubscribe} Unsubscribe
 * @typedef {import('../sessions/session.js').Session} Session
 */

/** @param {Pick<import('./index.js').HandlerDeps, 'endings' | 'outbox'>} deps */
export const createUnsubscribe = ({ endings, outbox }) =>
  /**
   * @param {Session} session
   * @param {Unsubscribe} message
   */
  function unsubscribe(session, { id, keys }) {
    for (const key of keys) endings.remove(session, key)
    outbox.send(session, { type: 'ok', id })
  }
