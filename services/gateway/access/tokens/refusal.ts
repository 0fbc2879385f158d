// Why tokens are refused: what is counted, what a client hears, what an operator reads.
import type { Problem } from '@keycast/protocol'

/** A client comes back after this time if there were no checks left, though its token may be right. */
const RETRY_AFTER_MS = 1_000

/** The reasons, which are the labels of a metric, each with the text that an operator reads. A client is not told. */
export const refusalTexts = Object.freeze({
  not_accepted: 'access.tokens names nobody who may sign tokens',
  too_big: 'it is longer than 8 KiB',
  malformed: 'it is no JWT',
  wrong_algorithm: 'no entry of access.tokens takes its "alg"',
  wrong_type: 'no entry of access.tokens that takes its "alg" takes its "typ": it was made for something else',
  wrong_issuer: 'no entry of access.tokens that takes its "alg" has its "iss"',
  wrong_audience: 'its "aud" does not hold the audience of access.tokens; an entry without one takes no "aud"',
  no_sub: 'it has no "sub"',
  no_exp: 'it has no "exp"',
  no_iat: 'it has no "iat": nobody knows when it was issued',
  bad_claims:
    'a claim is too long or deep, of the wrong type or has control characters, or its "sub" begins with the prefix of another entry',
  expired: 'its "exp" is over',
  not_yet_valid: 'its "nbf" or "iat" is over 30 s ahead of the clock here',
  too_long_lived: 'its "exp" is more than access.maxLifetime after its "iat"',
  unknown_key: 'the key set has no key with its "kid" and "alg"',
  bad_signature: 'no key of access.tokens made its signature',
  bad_rights: 'its claim with the rights cannot be read',
  revoked: 'it, or its user, was revoked',
  too_many_attempts: 'too many tokens were asked about at once: ask again',
  keys_unavailable: 'the key set of its issuer cannot be fetched now',
  busy: 'too many tokens are being checked: ask again',
})

export type RefusalReason = keyof typeof refusalTexts

export const refusalReasons = Object.freeze(Object.keys(refusalTexts) as RefusalReason[])

export interface Refused {
  /** For metrics and the log at debug. */
  reason: RefusalReason
  /** For the client: the same for every token that is wrong. With `retryAfterMs` the token may be right. */
  problem: Problem
}

/** Clients read this text, whatever the problem of the token. */
export const tokenRefused: Problem = Object.freeze({ code: 'token_refused', message: 'the token was refused' })
const NOT_NOW = 'the token cannot be checked now: send it again later'

/** The reasons that say nothing about the token. */
const passing: ReadonlySet<RefusalReason> = new Set(['too_many_attempts', 'keys_unavailable', 'busy'])

export function refuse(reason: RefusalReason, waitMs: number = 0): { refused: Refused } {
  if (!passing.has(reason)) return { refused: { reason, problem: tokenRefused } }
  const retryAfterMs = Math.max(waitMs, RETRY_AFTER_MS)
  return { refused: { reason, problem: { code: 'token_refused', message: NOT_NOW, retryAfterMs } } }
}
