// A gateway's text for each code, for the fake one. A test compares them with packages/protocol/codes.js.

/** @type {Record<string, string>} */
export const messages = {
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
}

/** @param {string} code */
export const messageOf = code => messages[code] ?? code
