// Every error and close code that a client can get. docs/protocol.md has the same tables; a test compares them.

/**
 * Codes of `error` and `stale` messages: the cause, and the remedy. While a subscription stands, `retryAfterMs` says that
 * the gateway tries again by itself; else the client may, after that time.
 */
export const errorCodes = Object.freeze({
  bad_message: 'not a JSON object with the fields its type needs: fix the client',
  unknown_type: 'no message has this type: fix the client',
  bad_key: 'the key breaks the key grammar: fix the key',
  unknown_namespace: 'no such namespace here: ask the operator which exist',
  too_many_keys: 'over the keys one session may subscribe to: unsubscribe from some, or open another connection',
  too_many_waiting: 'too many requests are waiting for an answer: wait for some of them first',
  rate_limited: 'too many requests: send fewer, and again after retryAfterMs',
  token_refused: 'the token is not accepted: get a new one; with retryAfterMs, send the same again after that time',
  token_expired: 'the token of this session has expired: send auth with a new one within 25 s',
  unauthenticated: 'this needs a token: send auth first',
  forbidden: 'the token does not grant this: ask for other rights',
  other_user: 'the token names another user than this session has: open another connection for it',
  capacity: 'the server holds as many values, messages or members of rooms as it may: try again later',
  not_found: 'the backend has nothing under this key (404, 410, or an answer without content)',
  backend_error: 'the backend answered with a server error (5xx), or without the whole content (206, or 304 unasked)',
  backend_refused: 'the backend refused the request (4xx): ask the operator to check the namespace',
  backend_throttled: 'the backend asks for fewer requests (429)',
  backend_redirect: 'the backend answered with a redirect, which is not followed: ask the operator to fix the URL',
  backend_timeout: "the backend did not answer within the namespace's timeout",
  backend_unreachable: 'no connection to the backend could be made or kept',
  backend_unavailable: 'the backend failed too often: its circuit breaker is open',
  invalid_content: "the backend's content is not what its type says (JSON that does not parse or is not UTF-8)",
  too_large: "the content is over the namespace's maxBytes: ask the operator to raise it",
  fetcher_unavailable: 'no fetcher node can be reached',
  fetcher_timeout: 'the fetcher did not answer in time',
  publish_unknown: 'whether the message was kept is not known: send the same again with the same messageId',
  message_refused: 'the backend does not take this message: `reason` may say why, so change it',
  id_conflict: 'the messageId stands for another message: use a new one for each',
  journal_unavailable: 'the journal cannot be reached, or cannot take more: nothing was kept',
  log_full: 'the log has no room: nothing was kept',
  name_taken: 'another user has this name in the room: choose another',
  other_epoch: 'the history of that epoch is gone: load what is there now',
})

/** @typedef {keyof typeof errorCodes} ErrorCode */

/**
 * WebSocket close codes the gateway uses. Below 4000: RFC 6455 section 7.4.1 and the IANA registry; the rest are ours.
 * `reconnect` says whether reconnecting, with backoff, makes sense.
 */
export const closeCodes = Object.freeze({
  protocol: { code: 1002, reconnect: false, doc: 'a frame that breaks the rules of WebSocket: fix the client' },
  unsupportedData: { code: 1003, reconnect: false, doc: 'a binary message: requests are text' },
  badUtf8: { code: 1007, reconnect: false, doc: 'a text message that is not UTF-8' },
  unfinished: {
    code: 1008,
    reconnect: true,
    doc: 'a message in too many pieces, or the largest unfinished one where all take too much: send it whole',
  },
  tooBig: { code: 1009, reconnect: false, doc: 'a message over the size limit named in welcome' },
  internalError: {
    code: 1011,
    reconnect: true,
    doc: 'the gateway failed over this session, which is a bug: come back',
  },
  restarting: { code: 1012, reconnect: true, doc: 'this gateway is being stopped or restarted: another will serve' },
  unauthenticated: {
    code: 4001,
    reconnect: true,
    doc: 'no token came in time, or it expired and was not renewed: come back with a new one',
  },
  revoked: { code: 4003, reconnect: false, doc: 'the token was revoked: the user has to sign in again' },
  abusive: { code: 4007, reconnect: false, doc: 'errors or requests kept coming far past the limits' },
  slow: {
    code: 4008,
    reconnect: true,
    doc: 'data was not read for too long, or too much of it: come back and resume from what you hold',
  },
})
