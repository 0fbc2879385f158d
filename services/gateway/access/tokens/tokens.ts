// Verifies tokens (JWT, RFC 7519, by the rules of RFC 8725): the user, the rights, the end. Cheap checks come first, so
// that garbage is refused before it costs a signature check.
import type { KeyObject } from 'node:crypto'
import type { Agent } from 'node:https'
import type { World } from '@keycast/service'
import type { CryptoKey } from 'jose'
import { compactVerify } from 'jose/jws/compact/verify'
import type { Log } from '../../sessions/session-log.ts'
import { Bearer } from '../backend/bearer.ts'
import { NotComparable, viewerName } from '../backend/viewer-name.ts'
import type { Policy, TokenIssuer } from '../policy-file.ts'
import type { Issued } from '../revocations/revocations.ts'
import type { Rights } from '../rights.ts'
import { type Rule, readRule } from '../rule.ts'
import type { Attempts } from '../token-attempts.ts'
import { type CheckQueue, createCheckQueue } from './check-queue.ts'
import { type Claims, checkClaims, isMeantFor } from './claims.ts'
import { createJwks, type Jwks, type NoKey } from './jwks.ts'
import { createKnownTokens, digestOf } from './known-tokens.ts'
import { readToken } from './read-token.ts'
import { type RefusalReason, type Refused, refuse } from './refusal.ts'
import { isOfType } from './token-type.ts'

/** Characters: a token is ASCII. Rights for hundreds of keys fit, and so does the header that brings it. */
const TOKEN_BYTES_MAX = 8_192

export interface Verified {
  /** The entry's prefix and `sub`. */
  user: string
  rights: Rights
  /** Wall clock. */
  expiresAtMs: number
  /** In Unix seconds. */
  issuedAt: number
  jti: string | undefined
  /** The entry of the policy that it was checked by, and the key where the entry lists keys. */
  signedBy?: { entry: string; key: KeyObject | undefined }
  /** Where backends are asked with the token: for whom. */
  viewer?: string
  /** The token itself, there. */
  bearer?: Bearer
}

/** What became of a token's check. */
export type Checked = { verified: Verified } | { refused: Refused }

interface Signer {
  /** Tells it from one that takes other tokens, or another part of them. */
  entry: string
  issuer: TokenIssuer
  jwks: Jwks | undefined
}

interface Deps extends Pick<World, 'now'> {
  /** Its `tokens` and `claim` may change: `renew` must be called then. */
  policy: Pick<Policy, 'tokens' | 'claim' | 'lifetimeMsMax'>
  rights: { of(user: string, granted?: Rule): Rights }
  revocations: { isRevoked(token: Issued): boolean }
  attempts: Attempts
  checks?: CheckQueue
  /** In milliseconds since 1970, as `exp` is counted from. */
  wallNow: () => number
  log?: Log
  /** Whether a verified token is kept, to ask backends with. */
  keepTokens?: boolean
  /** For fetching key sets; Node's own unless given. */
  agent?: Agent
}

export function createTokens({
  policy,
  rights,
  revocations,
  attempts,
  checks = createCheckQueue(),
  now,
  wallNow,
  log,
  agent,
  keepTokens = false,
}: Deps) {
  let signers = signersOf([])

  let known = createKnownTokens({ now, wallNow })

  /** @param before those that stay keep the key sets that they have */
  function signersOf(before: Signer[]): Signer[] {
    return policy.tokens.map(issuer => {
      const entry = entryOf(issuer)
      const jwks = issuer.jwks === undefined ? undefined : before.find(each => each.entry === entry)?.jwks
      return { entry, issuer, jwks: jwks ?? (issuer.jwks === undefined ? undefined : jwksOf(issuer)) }
    })
  }

  function entryOf({ name: _, keys: __, ...issuer }: TokenIssuer) {
    return JSON.stringify([policy.claim, issuer])
  }

  const prefixes = () => policy.tokens.map(({ prefix }) => prefix).filter(prefix => prefix !== '')

  function jwksOf({ name, jwks }: TokenIssuer) {
    const events = {
      ok: (keys: number) => log?.debug({ issuer: name, keys }, 'the key set was fetched'),
      failed: (problem: string, keys: number) => {
        const so = keys > 0 ? 'the keys held go on serving' : 'none is held, so all tokens of this entry are refused'
        log?.warn({ issuer: name, jwks, problem }, `the key set cannot be fetched: ${so}`)
      },
    }
    return createJwks({ url: jwks as string, now, events, agent })
  }

  /**
   * @param token as it came
   * @param from as `limitKeyOf` gives it
   * @returns never rejects
   */
  async function verify(token: unknown, { address }: { address: string }): Promise<Checked> {
    if (signers.length === 0) return refuse('not_accepted')
    if (typeof token !== 'string') return refuse('malformed')
    if (token.length > TOKEN_BYTES_MAX) return refuse('too_big')

    const digest = digestOf(token)
    const verified = known.recall(digest)
    if (verified) return revocations.isRevoked(verified) ? refuse('revoked') : { verified: withBearer(verified, token) }

    const waitMs = attempts.take(address)
    if (waitMs > 0) return refuse('too_many_attempts', waitMs)
    const by = signers
    const result = await verifyAnew(token)
    // Those who may sign changed meanwhile.
    if (by !== signers) {
      attempts.giveBack(address)
      return verify(token, { address })
    }
    if ('refused' in result) return result
    attempts.giveBack(address)
    known.remember(digest, token, result.verified)
    return { verified: withBearer(result.verified, token) }
  }

  const withBearer = (verified: Verified, token: string): Verified =>
    keepTokens ? { ...verified, bearer: new Bearer(token) } : verified

  async function verifyAnew(token: string): Promise<Checked> {
    const read = readToken(token)
    if (!read) return refuse('malformed')
    const { algorithm, type, kid, claims } = read

    const candidates = candidatesFor({ algorithm, type }, claims)
    if (typeof candidates === 'string') return refuse(candidates)
    const checked = checkClaims(claims, { wallMs: wallNow(), lifetimeMsMax: policy.lifetimeMsMax })
    if (typeof checked === 'string') return refuse(checked)

    const found = await signerOf(token, { algorithm, kid }, candidates)
    if (typeof found === 'string') return refuse(found)
    const { signer, key } = found
    const result = admit(checked, signer.issuer)
    if ('verified' in result) result.verified.signedBy = { entry: signer.entry, key: signer.jwks ? undefined : key }
    if (keepTokens && 'verified' in result) {
      const viewer = viewerOf(result.verified.user, checked, signer.issuer)
      if (viewer === undefined) return refuse('bad_claims')
      result.verified.viewer = viewer
    }
    return result
  }

  /**
   * Those who may have signed. More than one only where several sign with the same algorithm and none or the same `iss`.
   */
  function candidatesFor(
    { algorithm, type }: { algorithm: string; type: string | undefined },
    { iss, aud }: Record<string, unknown>,
  ): Signer[] | RefusalReason {
    const byAlgorithm = signers.filter(({ issuer }) => issuer.algorithms.includes(algorithm))
    if (byAlgorithm.length === 0) return 'wrong_algorithm'
    const byType = byAlgorithm.filter(({ issuer }) => isOfType(issuer.type, type))
    if (byType.length === 0) return 'wrong_type'
    const byIssuer = byType.filter(({ issuer }) => issuer.issuer === undefined || issuer.issuer === iss)
    if (byIssuer.length === 0) return 'wrong_issuer'
    const byAudience = byIssuer.filter(({ issuer }) => isMeantFor(issuer.audience, aud))
    return byAudience.length === 0 ? 'wrong_audience' : byAudience
  }

  async function signerOf(
    token: string,
    signed: { algorithm: string; kid: string | undefined },
    candidates: Signer[],
  ): Promise<{ signer: Signer; key: KeyObject } | RefusalReason> {
    let reason: RefusalReason = 'unknown_key'
    for (const signer of candidates) {
      const keys = await keysOf(signer, signed)
      if (typeof keys === 'string') {
        // Prefers `keys_unavailable` to `unknown_key`: the token may still be valid.
        if (reason === 'unknown_key') reason = keys
        continue
      }
      const check = checks.run(() => keyThatSigned(token, keys, signed.algorithm))
      if (!check) return 'busy'
      const key = await check
      if (key) return { signer, key: key as KeyObject }
      if (reason === 'unknown_key') reason = 'bad_signature'
    }
    return reason
  }

  function admit({ sub, exp, iat, jti, all }: Claims, { prefix }: TokenIssuer): Checked {
    const user = prefix + sub
    // An issuer without a prefix must not name the users of one that has one.
    if (prefixes().some(other => other !== prefix && user.startsWith(other))) return refuse('bad_claims')
    const issued = { user, issuedAt: iat, jti }
    if (revocations.isRevoked(issued)) return refuse('revoked')

    const { claim } = policy
    const written = Object.hasOwn(all, claim) ? all[claim] : undefined
    const read = written === undefined ? undefined : readRule(written, { user: true, strict: false })
    if (read && read.problems.length > 0) return refuse('bad_rights')
    return { verified: { ...issued, rights: rights.of(user, read?.rule), expiresAtMs: exp * 1_000 } }
  }

  const ask = (asked: Signer[]) => Promise.all(asked.map(({ jwks }) => jwks?.ask()))

  return {
    verify,

    /** Whether a token that was good is still one, by those who may sign now. */
    isAccepted({ signedBy }: Pick<Verified, 'signedBy'>) {
      if (!signedBy) return true
      const { entry, key } = signedBy
      return signers.some(
        ({ entry: name, issuer }) => name === entry && (!key || issuer.keys.some(each => each.equals(key))),
      )
    },

    /** The policy names others who may sign, or another claim. */
    renew() {
      const before = signers
      signers = signersOf(before)
      known = createKnownTokens({ now, wallNow })
      for (const { jwks } of before) if (!signers.some(each => each.jwks === jwks)) jwks?.stop()
      void ask(signers.filter(({ jwks }) => !before.some(each => each.jwks === jwks)))
    },

    /** Asks for all key sets at once, so that the first tokens need not wait. Nothing fails with it. */
    async start() {
      await ask(signers)
    },

    stop() {
      for (const { jwks } of signers) jwks?.stop()
    },

    /** For metrics: the key sets, by entry. */
    jwksStatus: () => signers.flatMap(({ issuer, jwks }) => (jwks ? [{ issuer: issuer.name, ...jwks.status() }] : [])),
  }
}

export type Tokens = ReturnType<typeof createTokens>

/** @returns `undefined` where a claim that counts cannot be compared */
function viewerOf(user: string, { all }: Claims, { issuer, audience, viewer }: TokenIssuer) {
  // What each token of the entry has tells none apart.
  const listed = viewer.filter(
    claim => !(claim === 'iss' && issuer !== undefined) && !(claim === 'aud' && all.aud === audience),
  )
  try {
    return viewerName(user, all, listed)
  } catch (error) {
    if (error instanceof NotComparable) return undefined
    throw error
  }
}

async function keysOf(
  { issuer, jwks }: Signer,
  signed: { algorithm: string; kid: string | undefined },
): Promise<(CryptoKey | KeyObject)[] | NoKey> {
  if (!jwks) return issuer.keys
  const found = await jwks.keyFor(signed)
  return 'key' in found ? [found.key] : found.reason
}

/** @param algorithm one that the issuer may use */
async function keyThatSigned(token: string, keys: (CryptoKey | KeyObject)[], algorithm: string) {
  for (const key of keys) {
    try {
      await compactVerify(token, key, { algorithms: [algorithm] })
      return key
    } catch {
      // Not by this key, or a key that cannot be for this algorithm.
    }
  }
  return undefined
}
