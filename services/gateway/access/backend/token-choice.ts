// Chooses the token with which a backend is asked about one key: the viewer's longest valid one that was not refused for it.
// A refusal is of one token for one key: another token of the user may be good for that key, and that token for other keys.
import type { Credentials } from '@keycast/backbone'
import { isUsed, type Token, type Viewer } from './viewers.ts'

/** One viewer's tokens and one key. Tokens are named by their digests. `askedWith`: the last one that was chosen. */
export interface TokenChoice {
  askedWith: string | undefined
  refused: readonly string[]
}

/** Of one viewer's tokens. A key that it may not read costs the backend a question for each. */
const ASKED_MAX = 4

const NONE: readonly string[] = Object.freeze([])

export const newTokenChoice = (): TokenChoice => ({ askedWith: undefined, refused: NONE })

/**
 * The token to ask with now; the choice is noted. If all valid ones were refused, each has its turn again.
 *
 * @returns `undefined` where none is valid
 */
export function chooseToken(viewer: Viewer, choice: TokenChoice, wallNowMs: number): Token | undefined {
  let token = nextToken(viewer, choice.refused, wallNowMs)
  if (!token) {
    choice.refused = NONE
    token = nextToken(viewer, NONE, wallNowMs)
  }
  choice.askedWith = token?.digest
  return token
}

/**
 * The backend refused a token.
 *
 * @param digest of which token, where that is known; else it is taken for the one chosen last
 * @returns whether the viewer has a token that was not refused
 */
export function noteRefused(
  viewer: Viewer,
  choice: TokenChoice,
  wallNowMs: number,
  digest: string | undefined = choice.askedWith,
): boolean {
  if (digest === undefined) return false
  // Only of tokens that would be asked with: a viewer may have thousands, one after the other.
  const asked = askedWith(viewer, wallNowMs)
  const known = choice.refused.filter(each => asked.some(({ digest }) => digest === each))
  choice.refused = [...known.filter(each => each !== digest), digest]
  return nextToken(viewer, choice.refused, wallNowMs) !== undefined
}

/** Whether the backend would be asked with another token than last, and not with one that it refused. */
export function hasNewToken(viewer: Viewer, { askedWith, refused }: TokenChoice, wallNowMs: number) {
  const next = nextToken(viewer, refused, wallNowMs)
  return next !== undefined && next.digest !== askedWith
}

/**
 * The node found the token that was chosen last expired: whether there is another, be it one that was refused before.
 */
export const hasTokenLeft = (viewer: Viewer, choice: TokenChoice, wallNowMs: number) =>
  hasNewToken(viewer, choice, wallNowMs) ||
  (!nextToken(viewer, choice.refused, wallNowMs) && hasNewToken(viewer, { ...choice, refused: NONE }, wallNowMs))

/** A backend's clock may be ahead by so much, and a question as long on its way. */
const EXPIRY_MARGIN_MS = 5_000

/**
 * Whether a refusal may say no more than that the token had expired when the backend looked at it.
 *
 * @param choice of the refused token
 * @param expiresAtMs when that token expires; Infinity for a viewer without any
 * @param refusedAtMs wall clock
 */
export function isExpiryRefused(
  { tokens }: Viewer,
  { askedWith }: TokenChoice,
  expiresAtMs: number,
  refusedAtMs: number,
) {
  if (refusedAtMs < expiresAtMs - EXPIRY_MARGIN_MS) return false
  // Those that are still valid were refused, too, or they would be asked with now.
  return !tokens.some(each => isUsed(each) && each.digest !== askedWith && each.expiresAtMs > refusedAtMs)
}

const nextToken = (viewer: Viewer, refused: readonly string[], wallNowMs: number): Token | undefined =>
  askedWith(viewer, wallNowMs).find(({ digest }) => !refused.includes(digest))

const askedWith = ({ tokens }: Viewer, wallNowMs: number) =>
  tokens.filter(each => isUsed(each) && each.expiresAtMs > wallNowMs).slice(0, ASKED_MAX)

/**
 * The credentials that a backend is asked with.
 *
 * @returns `undefined` where no token of the viewer is valid
 */
export function chooseCredentials(viewer: Viewer, choice: TokenChoice, wallNowMs: number): Credentials | undefined {
  if (viewer.user === undefined) return {}
  const token = chooseToken(viewer, choice, wallNowMs)
  return token && { authorization: token.bearer?.authorization(), expiresAt: token.expiresAtMs }
}
