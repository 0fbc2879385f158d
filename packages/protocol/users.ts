// The names of users. Gateways admit only tokens of such users, and the journal takes messages and members of every
// such user: a user who may read can always publish.

/** Longest prefix that an operator puts before the `sub` of an issuer's tokens. */
export const USER_PREFIX_CHARACTERS_MAX = 64

/** OpenID Connect Core section 2: a `sub` has 255 characters at most. */
export const SUB_CHARACTERS_MAX = 255

export const USER_CHARACTERS_MAX = USER_PREFIX_CHARACTERS_MAX + SUB_CHARACTERS_MAX

/**
 * Control characters would break the separators of the journal's log. A lone surrogate has the same UTF-8 as others:
 * two users would share their data.
 */
const userGrammar = /^[^\p{Cc}\p{Cs}]+$/u

/** @param text the name of a user, or a part of one */
export function isUser(text: string) {
  return text.length <= USER_CHARACTERS_MAX && userGrammar.test(text)
}
