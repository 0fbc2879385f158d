// The viewer whose own value a key is, and the credentials that it is fetched with. Gateways send them with their wants, and
// they are stored nowhere else. So they are gone with the last want.
import { ANONYMOUS_VIEWER, type Credentials, readViewerKey } from '@keycast/backbone'
import type { Entry } from './entry.ts'
import { eachWatcher } from './watchers.ts'

/**
 * The viewer whose own value it is; `undefined` if all have the same. Read from the key each time: most keys have none,
 * and a field would cost a million of them 8 MB.
 */
export const viewerOf = ({ key, namespace }: Entry) => (namespace.isPerUser ? readViewerKey(key)?.viewer : undefined)

/** The key as clients and backends know it. */
export const sharedKeyOf = ({ key, namespace }: Entry) => (namespace.isPerUser && readViewerKey(key)?.key) || key

/** Several gateways may send different tokens: the one that is valid longest is used. */
function longest({ interest: { watchers, waiters } }: Entry): Credentials | undefined {
  let best: Credentials | undefined
  const take = ({ credentials }: { credentials?: Credentials }) => {
    if (credentials && (credentials.expiresAt ?? 0) > (best?.expiresAt ?? 0)) best = credentials
  }
  for (const watcher of eachWatcher(watchers)) take(watcher)
  if (waiters) for (const waiter of waiters.values()) take(waiter)
  return best
}

/**
 * The `Authorization` header to fetch a key with.
 *
 * @param wallNowMs in milliseconds since 1970
 * @returns `undefined` also for keys that are nobody's own, and for viewers without a token
 */
export function authorizationOf(entry: Entry, wallNowMs: number): string | undefined {
  if (!needsOwnToken(entry)) return undefined
  const best = longest(entry)
  return best && (best.expiresAt ?? 0) > wallNowMs ? best.authorization : undefined
}

/**
 * Whether the backend may be asked. A user's own value is never fetched without a valid token: the backend would answer
 * for anybody.
 */
export const mayAsk = (entry: Entry, wallNowMs: number) =>
  !needsOwnToken(entry) || authorizationOf(entry, wallNowMs) !== undefined

/** Whether it is asked for with its viewer's token alone. */
export const needsOwnToken = (entry: Entry) => needsToken(viewerOf(entry))

const needsToken = (viewer: string | undefined) => viewer !== undefined && viewer !== ANONYMOUS_VIEWER

/** Whether a want names its viewer, as the namespace demands. */
export const isValidFor = (viewer: string | undefined, credentials: Credentials | undefined, wallNowMs: number) =>
  !needsToken(viewer) || (credentials?.expiresAt ?? 0) > wallNowMs

/** The memory that the credentials of a key's wants take. */
export function credentialBytesOf({ namespace, interest: { watchers, waiters } }: Entry) {
  if (!namespace.isPerUser) return 0
  let bytes = 0
  for (const { credentials } of eachWatcher(watchers)) bytes += credentials?.authorization?.length ?? 0
  if (waiters) for (const { credentials } of waiters.values()) bytes += credentials?.authorization?.length ?? 0
  return bytes
}
