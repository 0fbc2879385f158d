// Tokens that are refused before their time: those of a user that were issued before some moment, or a single one.
import { z } from 'zod'

/** At some 150 bytes each they take 15 MB. Beyond, a revocation is refused aloud: to drop another would let a token live. */
const ENTRIES_MAX = 100_000

/** Clocks of issuers run ahead by this much at most: the `iat` of a token that is just issued may be so far ahead. */
export const ISSUER_AHEAD_SECONDS_MAX = 30

/** Clocks differ; further ahead it is a mistake, as milliseconds in place of seconds, that would shut the user out. */
const AHEAD_SECONDS_MAX = 24 * 3_600

/**
 * A revocation is kept for so much longer than its tokens could live: where the clock of the journal's host is behind, it
 * was later than it seems, and a clock that jumps forward for a moment must not have all of them forgotten.
 */
const CLOCKS_APART_MS_MAX = 2 * 3_600_000

const NAME_CHARACTERS_MAX = 512

/** Not by `min` and `max`: zod compares the `length` of whatever it is given, which throws where that is an object. */
const named = z.string().refine(name => name !== '' && name.length <= NAME_CHARACTERS_MAX)

const body = z.union([
  z.strictObject({ sub: named, before: z.number().nonnegative().optional() }),
  z.strictObject({ jti: named }),
])

/** Tokens of a user issued before a time in Unix seconds, or the one with that `jti`. */
export type Revocation = { sub: string; before: number } | { jti: string }

/** The fields that tell whether a token is revoked. `issuedAt` in Unix seconds, as the issuer's clock had it. */
export interface Issued {
  user: string
  issuedAt: number
  jti: string | undefined
}

/**
 * Reads the body of `POST /v1/revoke`. Without `before` all tokens issued up to now are meant, also those of an issuer
 * whose clock is ahead.
 *
 * @param nowMs wall clock
 */
export function readRevocation(given: unknown, nowMs: number): { revocation: Revocation } | { problem: string } {
  const parsed = body.safeParse(given)
  if (!parsed.success) {
    return {
      problem: `the body must be {"sub":"ann"}, {"sub":"ann","before":1800000000} (Unix seconds) or {"jti":"…"}; names have 1 to ${NAME_CHARACTERS_MAX} characters`,
    }
  }
  if ('jti' in parsed.data) return { revocation: parsed.data }
  const { sub, before = nowMs / 1_000 + ISSUER_AHEAD_SECONDS_MAX } = parsed.data
  if (before > nowMs / 1_000 + AHEAD_SECONDS_MAX) {
    return { problem: `"before" is ${before}, over a day ahead: it is in Unix seconds, not milliseconds` }
  }
  return { revocation: { sub, before } }
}

/**
 * The latest `iat` of the tokens that a revocation means, in milliseconds. A list that forgot it less than a lifetime later
 * would take such tokens again.
 */
const lastIssuedAtMs = (revocation: Revocation, revokedAtMs: number) =>
  'jti' in revocation ? revokedAtMs + ISSUER_AHEAD_SECONDS_MAX * 1_000 : revocation.before * 1_000

interface Options {
  /** Longest time from a token's `iat` to its `exp`. */
  lifetimeMsMax: number
  /** Wall clock, in milliseconds. */
  now: () => number
  entriesMax?: number
}

export function createRevocations({ lifetimeMsMax, now, entriesMax = ENTRIES_MAX }: Options) {
  const users = new Map<string, { before: number; untilMs: number }>()
  /** By `jti`, until when. */
  const single = new Map<string, number>()

  const size = () => users.size + single.size

  return {
    /**
     * @param revokedAtMs wall clock; now, unless it comes from the list that gateways share
     * @returns `known`: one at least as strong stands, or no token it means can be valid any more; `full`: nothing was
     *   revoked
     */
    add(revocation: Revocation, revokedAtMs: number = now()): 'added' | 'known' | 'full' {
      const untilMs = lastIssuedAtMs(revocation, revokedAtMs) + lifetimeMsMax + CLOCKS_APART_MS_MAX
      if (untilMs <= now()) return 'known'
      if ('jti' in revocation) {
        if (single.has(revocation.jti)) return 'known'
        if (size() >= entriesMax) return 'full'
        single.set(revocation.jti, untilMs)
        return 'added'
      }
      const { sub, before } = revocation
      const held = users.get(sub)
      if (held && held.before >= before) return 'known'
      if (!held && size() >= entriesMax) return 'full'
      users.set(sub, { before, untilMs })
      return 'added'
    },

    isRevoked({ user, issuedAt, jti }: Issued) {
      if (jti !== undefined && single.has(jti)) return true
      const held = users.get(user)
      return held !== undefined && issuedAt < held.before
    },

    /** @returns in Unix seconds: tokens issued before it are refused */
    revokedBefore: (user: string): number | undefined => users.get(user)?.before,

    /** Forgets what no valid token can meet any more. Looks at all: once a minute is often enough. */
    sweep() {
      const nowMs = now()
      for (const [user, { untilMs }] of users) if (untilMs <= nowMs) users.delete(user)
      for (const [jti, untilMs] of single) if (untilMs <= nowMs) single.delete(jti)
    },

    get size() {
      return size()
    },
  }
}
