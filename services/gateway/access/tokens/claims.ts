// The claims of a token that need no key to be checked (RFC 7519 section 4.1): whom it is of, and from when until when.
import { isUser, SUB_CHARACTERS_MAX } from '@keycast/protocol'
import { ISSUER_AHEAD_SECONDS_MAX } from '../revocations/revocations.ts'
import type { RefusalReason } from './refusal.ts'

const JTI_CHARACTERS_MAX = 512

export interface Claims {
  sub: string
  exp: number
  iat: number
  jti: string | undefined
  all: Record<string, unknown>
}

/** @param wallMs since 1970 */
export function checkClaims(
  claims: Record<string, unknown>,
  { wallMs, lifetimeMsMax }: { wallMs: number; lifetimeMsMax: number },
): Claims | RefusalReason {
  const { sub, exp, nbf, iat, jti } = claims
  if (sub === undefined || sub === '') return 'no_sub'
  if (exp === undefined) return 'no_exp'
  // Without it nobody knows for how long a token lives, and for how long its revocation must be remembered.
  if (iat === undefined) return 'no_iat'
  if (!isText(sub, SUB_CHARACTERS_MAX) || !isUser(sub)) return 'bad_claims'
  if (!isTime(exp) || !isTime(iat) || !(nbf === undefined || isTime(nbf))) return 'bad_claims'
  if (jti !== undefined && !isText(jti, JTI_CHARACTERS_MAX)) return 'bad_claims'

  const nowSeconds = wallMs / 1_000
  if (nowSeconds >= exp) return 'expired'
  // No leeway for `exp`: an issuer whose clock is behind ends its tokens late by itself.
  if (Math.max(nbf ?? 0, iat) > nowSeconds + ISSUER_AHEAD_SECONDS_MAX) return 'not_yet_valid'
  // Revocations are kept no longer: a token issued before one and living on after it would be good again.
  if (exp > iat + lifetimeMsMax / 1_000) return 'too_long_lived'
  return { sub, exp, iat, jti, all: claims }
}

/** RFC 7519 section 4.1.3: who is not named by an `aud` that is there must refuse the token. */
export function isMeantFor(audience: string | undefined, aud: unknown) {
  if (audience === undefined) return aud === undefined
  return Array.isArray(aud) ? aud.includes(audience) : aud === audience
}

function isText(value: unknown, charactersMax: number): value is string {
  return typeof value === 'string' && value.length <= charactersMax
}

/** RFC 7519 section 2, NumericDate. */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}
