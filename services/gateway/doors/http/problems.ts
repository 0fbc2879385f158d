// Errors in HTTP: a status and `{ code, message, retryAfterMs?, problems?, lines? }`. Every error on both listeners is sent
// from here, except those that packages/service answers itself (http-errors.ts).
import { type ErrorCode, errorCodes, type Problem, retryAfterMsOf } from '@keycast/protocol'
import type { FastifyReply } from 'fastify'

/** `problems`: each thing that is wrong with a request, where there may be several. `lines`: of a batch, those it is about. */
export interface HttpProblem extends Omit<Problem, 'code'> {
  readonly code: ErrorCode | keyof typeof requestStatusOf
  readonly problems?: string[]
  readonly lines?: number[]
}

/** RFC 9110 section 15: 502 the backend's answer was of no use, 503 not now, 504 no answer in time. */
export const statusOf: Record<ErrorCode, number> = {
  bad_message: 400,
  unknown_type: 400,
  bad_key: 400,
  too_many_keys: 400,
  token_refused: 401,
  token_expired: 401,
  unauthenticated: 401,
  forbidden: 403,
  message_refused: 403,
  other_user: 403,
  unknown_namespace: 404,
  not_found: 404,
  rate_limited: 429,
  backend_throttled: 429,
  id_conflict: 409,
  name_taken: 409,
  other_epoch: 410,
  backend_error: 502,
  backend_refused: 502,
  backend_redirect: 502,
  backend_unreachable: 502,
  invalid_content: 502,
  too_large: 502,
  backend_unavailable: 503,
  capacity: 503,
  journal_unavailable: 503,
  publish_unknown: 503,
  fetcher_unavailable: 503,
  too_many_waiting: 503,
  backend_timeout: 504,
  fetcher_timeout: 504,
  log_full: 507,
}

/** The `WWW-Authenticate` challenge for a refused token (RFC 6750 section 3.1). */
export const INVALID_TOKEN = 'Bearer error="invalid_token"'

/** Codes that exist only in HTTP: they are about the request, not about a key. */
const requestStatusOf = {
  bad_request: 400,
  unauthorized: 401,
  no_token_set: 403,
  scope_missing: 403,
  unknown_path: 404,
  unknown_stream: 404,
  unknown_ticket: 404,
  revocations_full: 507,
}

/** The status of every code that a gateway answers with over HTTP. */
export const statuses: Record<HttpProblem['code'], number> = { ...statusOf, ...requestStatusOf }

/** A refused token that could not be checked may be right: 401 would have its client ask for another one. */
export const statusFor = ({ code, retryAfterMs }: HttpProblem): number =>
  code === 'token_refused' && retryAfterMs !== undefined ? 503 : statuses[code]

/** @param status an HTTP status that says more than the code's own */
export function sendProblem(reply: FastifyReply, problem: HttpProblem, status: number = statusFor(problem)) {
  const {
    code,
    message = Object.hasOwn(errorCodes, code) ? errorCodes[code as ErrorCode] : code,
    problems,
    lines,
  } = problem
  const retryAfterMs = retryAfterMsOf(problem)
  reply.code(status).header('cache-control', 'no-store')
  // RFC 9110 section 15.5.2: a 401 says what would help.
  if (status === 401 && !reply.hasHeader('www-authenticate')) {
    reply.header('www-authenticate', code === 'token_refused' ? INVALID_TOKEN : 'Bearer')
  }
  // Whole seconds (RFC 9110 section 10.2.3): rounded up, so that nobody comes too early.
  if (retryAfterMs !== undefined) reply.header('retry-after', String(Math.ceil(retryAfterMs / 1_000)))
  return reply.send({ code, message, retryAfterMs, problems, lines })
}
