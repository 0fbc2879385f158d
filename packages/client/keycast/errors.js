// The one kind of error that this library gives to an application.

/**
 * A code of the protocol, or one of the client's own. `closed`: `close()` or the gateway closed the connection for
 * good. `not_sent`: a message was not sent before its deadline. `not_a_room`: the key is that of a value.
 * `not_a_value`: it is that of a room.
 *
 * @typedef {import('./connection/codes.js').ErrorCode | 'closed' | 'not_sent' | 'not_a_room' | 'not_a_value'} KeycastErrorCode
 */

/**
 * How what a handle shows stands. `loading`: the gateway has not said so yet, or has nothing to show. `live`: it is as
 * the backend has it. `stale`: the backend, or the journal, cannot be asked. `offline`: there is no connection.
 * `forbidden`: the user may not see it, which is asked again. `ended`: for another reason it is not asked for any more.
 *
 * @typedef {'loading' | 'live' | 'stale' | 'offline' | 'forbidden' | 'ended'} Health
 */

/**
 * How the subscription ended that an error is about; nothing if it stands. The right that a user has not may come.
 *
 * @param {{ code: string, subscribed?: boolean } | undefined} error
 */
export const endOf = error =>
  error && !error.subscribed ? (/^(forb|unauth)/.test(error.code) ? 'forbidden' : 'ended') : undefined

/** The error that a promise rejects with, or that a state holds. */
export class KeycastError extends Error {
  /**
   * @param {object} error
   * @param {KeycastErrorCode} error.code
   * @param {string} error.message
   * @param {string} [error.key]
   * @param {number} [error.retryAfterMs]
   * @param {boolean} [error.subscribed]
   * @param {string} [error.reason]
   */
  constructor({ code, message, key, retryAfterMs, subscribed, reason }) {
    super(message)
    this.name = 'KeycastError'
    /** The cause, for programs. @type {KeycastErrorCode} */
    this.code = code
    /** The key it is about, if any. @type {string | undefined} */
    this.key = key
    /** If given, a new try makes sense after this time. @type {number | undefined} */
    this.retryAfterMs = retryAfterMs
    /** Whether the subscription to `key` stands: the gateway tries again by itself. @type {boolean | undefined} */
    this.subscribed = subscribed
    /** Of a message that the backend refused: its own code for that. @type {string | undefined} */
    this.reason = reason
  }
}
