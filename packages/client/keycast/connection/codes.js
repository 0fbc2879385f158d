// The codes of the protocol as far as a client must know them. A test holds them to packages/protocol/codes.js.

/**
 * Codes of `error` and `stale` messages.
 *
 * @typedef {'bad_message' | 'unknown_type' | 'bad_key' | 'unknown_namespace' | 'too_many_keys' | 'too_many_waiting'
 *   | 'rate_limited' | 'token_refused' | 'token_expired' | 'unauthenticated' | 'forbidden' | 'other_user' | 'capacity' | 'not_found' | 'backend_error' | 'backend_refused' | 'backend_throttled'
 *   | 'backend_redirect' | 'backend_timeout' | 'backend_unreachable' | 'backend_unavailable' | 'invalid_content'
 *   | 'too_large' | 'fetcher_unavailable' | 'fetcher_timeout' | 'publish_unknown' | 'id_conflict'
 *   | 'journal_unavailable' | 'log_full' | 'name_taken' | 'other_epoch'} ErrorCode
 */

/**
 * WebSocket close codes after which a new connection makes no sense, and why.
 *
 * @type {Record<number, string>}
 */
export const finalCloseCodes = {
  1002: 'a frame that breaks the rules of WebSocket: fix the client',
  1003: 'a binary message: requests are text',
  1007: 'a text message that is not UTF-8',
  1009: 'a message over the size limit named in welcome',
  4003: 'the token was revoked: the user has to sign in again',
  4007: 'errors or requests kept coming far past the limits',
}
