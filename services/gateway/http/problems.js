// What went wrong with a key, in HTTP: a status and `{ code, message, retryAfterMs? }`.

/**
 * @typedef {import('@keycast/protocol').ErrorCode} ErrorCode
 * @typedef {{ code: ErrorCode, message: string, retryAfterMs?: number | undefined }} Problem
 */

/** RFC 9110 section 15: 502 what the backend said was no use, 503 not now, 504 no answer in time. @type {Record<ErrorCode, number>} */
export const statusOf = {
  bad_message: 400,
  unknown_type: 400,
  bad_key: 400,
  too_many_keys: 400,
  unknown_namespace: 404,
  not_found: 404,
  rate_limited: 429,
  backend_throttled: 429,
  backend_error: 502,
  backend_refused: 502,
  backend_redirect: 502,
  backend_unreachable: 502,
  invalid_content: 502,
  too_large: 502,
  backend_unavailable: 503,
  capacity: 503,
  fetcher_unavailable: 503,
  too_many_waiting: 503,
  backend_timeout: 504,
  fetcher_timeout: 504,
}

/**
 * @param {import('fastify').FastifyReply} reply
 * @param {Problem} problem
 */
export function sendProblem(reply, { code, message, retryAfterMs }) {
  reply.code(statusOf[code]).header('cache-control', 'no-store')
  // Whole seconds (RFC 9110 section 10.2.3): rounded up, so that nobody comes too early.
  if (retryAfterMs !== undefined) reply.header('retry-after', String(Math.ceil(retryAfterMs / 1_000)))
  return reply.send({ code, message, retryAfterMs })
}
