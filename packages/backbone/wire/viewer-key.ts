// Keys that belong to one viewer: a name for the pair of a viewer and a key. No client can name it, for no key holds
// the mark between them.
import { hash } from 'node:crypto'

interface Viewed {
  key: string
  viewer: string
}

const SEPARATOR = '|'

/** 43 characters of base64url: digests of the user and of the viewer; or the one viewer that all without a token are. */
const viewerGrammar = /^(?:[A-Za-z0-9_-]{43}|anonymous)$/

/** All viewers without a token. */
export const ANONYMOUS_VIEWER = 'anonymous'

/** Characters of a viewer's name that are its user's: 120 bits, which nobody finds a second user for. */
const USER_CHARACTERS = 20

/** A user as nodes know it. @param user the prefix of the token's issuer and its `sub` */
export const userName = (user: string) => hash('sha256', user, 'base64url').slice(0, USER_CHARACTERS)

/** @param digest of the user and of all by which its viewers differ, 43 characters of base64url */
export const viewerOfUser = (name: string, digest: string) => name + digest.slice(USER_CHARACTERS)

/** @param viewer of a viewer key */
export const userOfViewer = (viewer: string) => viewer.slice(0, USER_CHARACTERS)

export const viewerKey = (key: string, viewer: string) => `${key}${SEPARATOR}${viewer}`

/** @returns `undefined` if it names no viewer. `keyProblem` checks the rest */
export function readViewerKey(text: string): Viewed | undefined {
  const end = text.indexOf(SEPARATOR)
  if (end === -1) return undefined
  const viewer = text.slice(end + 1)
  return viewerGrammar.test(viewer) ? { key: text.slice(0, end), viewer } : undefined
}
