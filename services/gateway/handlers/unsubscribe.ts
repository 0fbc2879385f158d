// Ends a session's subscriptions to keys. The request is idempotent: a key it was not subscribed to is no error.

/**
 * @typedef {import('@keycast/protocol').Unsubscribe} Unsubscribe
 * @typedef {import('../sessions/session.ts').Session} Session
 */

/** @param {Pick<import('./index.ts').HandlerDeps, 'admissions' | 'outbox'>} deps */
export const createUnsubscribe = ({ admissions, outbox }) =>
  /**
   * @param {Session} session
   * @param {Unsubscribe} message
   */
  function unsubscribe(session, { id, keys }) {
    for (const key of keys) admissions.unsubscribe(session, key)
    outbox.send(session, { type: 'ok', id })
  }
