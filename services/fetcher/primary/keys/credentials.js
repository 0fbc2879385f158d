// What a viewer's own value is asked for with: the credentials that gateways sent with their wants, and only while they
// want it. They are in no other place, so they are gone with the last want.
import { ANONYMOUS_VIEWER } from '@keycast/backbone'
import { viewerOf } from './entry.js'
import { eachWatcher } from './watchers.js'

/**
 * @typedef {import('./entry.js').Entry} Entry
 * @typedef {import('@keycast/backbone').Credentials} Credentials
 */

/**
 * Of those of several gateways, which may be of different tokens, the one that is valid longest.
 *
 * @param {Entry} entry
 * @returns {Credentials | undefined}
 */
function longest({ interest: { watchers, waiters } }) {
  /** @type {Credentials | undefined} */
  let best
  const take = (/** @type {{ credentials?: Credentials }} */ { credentials }) => {
    if (credentials && (credentials.expiresAt ?? 0) > (best?.expiresAt ?? 0)) best = credentials
  }
  for (const watcher of eachWatcher(watchers)) take(watcher)
  if (waiters) for (const waiter of waiters.values()) take(waiter)
  return best
}

/**
 * The `Authorization` to ask for a key with.
 *
 * @param {Entry} entry
 * @param {number} wallNowMs in milliseconds since 1970
 * @returns {string | undefined} also `undefined` for keys that are nobody's own, and for viewers without a token
 */
export function authorizationOf(entry, wallNowMs) {
  if (!needsToken(viewerOf(entry))) return undefined
  const best = longest(entry)
  return best && (best.expiresAt ?? 0) > wallNowMs ? best.authorization : undefined
}

/**
 * Whether the backend may be asked: of a user's own value never without a token that is valid, or it would answer for
 * anybody.
 *
 * @param {Entry} entry
 * @param {number} wallNowMs
 */
export const mayAsk = (entry, wallNowMs) =>
  !needsToken(viewerOf(entry)) || authorizationOf(entry, wallNowMs) !== undefined

/** @param {string | undefined} viewer */
const needsToken = viewer => viewer !== undefined && viewer !== ANONYMOUS_VIEWER

/**
 * Whether a want says for whom it is as it must.
 *
 * @param {string | undefined} viewer
 * @param {Credentials | undefined} credentials
 * @param {number} wallNowMs
 */
export const isValidFor = (viewer, credentials, wallNowMs) =>
  !needsToken(viewer) || (credentials?.expiresAt ?? 0) > wallNowMs

/** What the credentials of a key's wants take. @param {Entry} entry */
export function credentialBytesOf({ namespace, interest: { watchers, waiters } }) {
  if (!namespace.isPerUser) return 0
  let bytes = 0
  for (const { credentials } of eachWatcher(watchers)) bytes += credentials?.authorization?.length ?? 0
  if (waiters) for (const { credentials } of waiters.values()) bytes += credentials?.authorization?.length ?? 0
  return bytes
}
