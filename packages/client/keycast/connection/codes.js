// The protocol's codes, as far as a client must know them. A test compares them with packages/protocol/codes.js.

/**
 * Codes of `error` and `stale` messages.
 *
 * @typedef {'bad_message' | 'unknown_type' | 'bad_key' | 'unknown_namespace' | 'too_many_keys' | 'too_many_waiting'
 *   | 'rate_limited' | 'token_refused' | 'token_expired' | 'unauthenticated' | 'forbidden' | 'other_user' | 'capacity' | 'not_found' | 'backend_error' | 'backend_refused' | 'backend_throttled'
 *   | 'backend_redirect' | 'backend_timeout' | 'backend_unreachable' | 'backend_unavailable' | 'invalid_content'
 *   | 'too_large' | 'fetcher_unavailable' | 'fetcher_timeout' | 'publish_unknown' | 'message_refused' | 'id_conflict'
 *   | 'journal_unavailable' | 'log_full' | 'name_taken' | 'other_epoch'} ErrorCode
 */

/** WebSocket close codes after which a new connection makes no sense: docs/protocol.md says why. @type {unknown[]} */
export const finalCloseCodes = [1002, 1003, 1007, 1009, 4003, 4007]
