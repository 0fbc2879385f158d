// Keys that belong to one viewer: a name for the pair of a viewer and a key. No client can name it, for no key holds a
// space.

export interface Viewed {
  key: string
  viewer: string
}

const SEPARATOR = ' '

/** 43 characters of base64url: a digest of who the viewer is; or the one viewer that all without a token are. */
const viewerGrammar = /^(?:[A-Za-z0-9_-]{43}|anonymous)$/

/** All viewers without a token. */
export const ANONYMOUS_VIEWER = 'anonymous'

export const viewerKey = (key: string, viewer: string) => `${key}${SEPARATOR}${viewer}`

/** @returns `undefined` if it names no viewer. `keyProblem` checks the rest */
export function readViewerKey(text: string): Viewed | undefined {
  const end = text.indexOf(SEPARATOR)
  if (end === -1) return undefined
  const viewer = text.slice(end + 1)
  return viewerGrammar.test(viewer) ? { key: text.slice(0, end), viewer } : undefined
}
