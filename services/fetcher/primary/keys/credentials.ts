// The credentials that a viewer's own value is fetched with. Gateways send them with their wants, and they are stored
// nowhere else. So they are gone with the last want.
import { ANONYMOUS_VIEWER } from '@keycast/backbone'
import { viewerOf } from './entry.ts'
import { eachWatcher } from './watchers.ts'

/**
 * @typedef {import('./entry.ts').Entry} Entry
 * @typedef {import('@keycast/backbone').Credentials} Credentials
 */

/**
 * Several gateways may send different tokens: the one that is valid longest is used.
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
 * The `Authorization` header to fetch a key with.
 *
 * @param {Entry} entry
 * @param {number} wallNowMs in milliseconds since 1970
 * @returns {string | undefined} `undefined` also for keys that are nobody's own, and for viewers without a token
 */
export function authorizationOf(entry, wallNowMs) {
  if (!needsToken(viewerOf(entry))) return undefined
  const best = longest(entry)
  return best && (best.expiresAt ?? 0) > wallNowMs ? best.authorization : undefined
}

/**
 * Whether the backend may be asked. A user's own value is never fetched without a valid token: the backend would answer
 * for anybody.
 *
 * @param {Entry} entry
 * @param {number} wallNowMs
 */
export const mayAsk = (entry, wallNowMs) =>
  !needsToken(viewerOf(entry)) || authorizationOf(entry, wallNowMs) !== undefined

/** @param {string | undefined} viewer */
const needsToken = viewer => viewer !== undefined && viewer !== ANONYMOUS_VIEWER

/**
 * Whether a want names its viewer, as the namespace demands.
 *
 * @param {string | undefined} viewer
 * @param {Credentials | undefined} credentials
 * @param {number} wallNowMs
 */
export const isValidFor = (viewer, credentials, wallNowMs) =>
  !needsToken(viewer) || (credentials?.expiresAt ?? 0) > wallNowMs

/** The memory that the credentials of a key's wants take. @param {Entry} entry */
export function credentialBytesOf({ namespace, interest: { watchers, waiters } }) {
  if (!namespace.isPerUser) return 0
  let bytes = 0
  for (const { credentials } of eachWatcher(watchers)) bytes += credentials?.authorization?.length ?? 0
  if (waiters) for (const { credentials } of waiters.values()) bytes += credentials?.authorization?.length ?? 0
  return bytes
}
