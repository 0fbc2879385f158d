// Tokens that were found good lately: their signature is not checked again. Code that polls brings the same token each time.
import { createHash } from 'node:crypto'
import { createRecent, type World } from '@keycast/service'
import type { Verified } from './tokens.ts'

/**
 * With its rights a short token takes ten times its characters, and one that names hundreds of patterns up to ninety
 * times: so many take 10 to 90 MB.
 */
const CHARACTERS_MAX = 2 ** 20

/** For so long a token is good without its signature being checked again; then a key may have been taken back. */
const KEPT_MS = 60_000

/** Names a token: none is kept here. */
export const digestOf = (token: string) => createHash('sha256').update(token).digest('base64')

export function createKnownTokens({ now, wallNow }: Pick<World, 'now' | 'wallNow'>) {
  /** By digest. */
  const tokens = createRecent<string, { verified: Verified; characters: number; untilMs: number }>()
  let characters = 0

  function forget(digest: string) {
    characters -= tokens.get(digest)?.characters ?? 0
    tokens.delete(digest)
  }

  return {
    /** @returns `undefined` where it has to be checked */
    recall(digest: string): Verified | undefined {
      const found = tokens.use(digest)
      if (!found) return undefined
      if (found.untilMs > now() && found.verified.expiresAtMs > wallNow()) return found.verified
      forget(digest)
      return undefined
    },

    /** @param token of the digest */
    remember(digest: string, token: string, verified: Verified) {
      // The same token may have been checked twice at a time.
      forget(digest)
      tokens.set(digest, { verified, characters: token.length, untilMs: now() + KEPT_MS })
      characters += token.length
      while (characters > CHARACTERS_MAX) forget(tokens.oldest()?.key as string)
    },
  }
}
