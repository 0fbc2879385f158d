// Changes of tokens and users' own values. Fetches use a token that is valid longer as soon as there is one. Values
// that were fetched with a token that ended are dropped, and fetched again with another.
import type { Backbone } from '@keycast/backbone'
import type { Problem } from '@keycast/protocol'
import type { TokenChoice } from '../../access/backend/token-choice.ts'
import { isUsed, type Viewer } from '../../access/backend/viewers.ts'
import type { Change } from './answers.ts'
import { type Entry, forget } from './cache.ts'

/**
 * The fetcher is told of a viewer's token at most this often: a client may renew as often as it is given tokens, and
 * watch thousands of keys.
 */
const RENEWAL_MS = 1_000

/** The client may ask again after this time: its user may have another token by then. */
const RETRY_MS = 1_000

const tokenExpired: Problem = { code: 'token_expired', retryAfterMs: RETRY_MS }

interface Deps {
  ownValues: { of(viewer: Viewer): ReadonlyMap<Entry, Readonly<TokenChoice>>; hasNewToken(entry: Entry): boolean }
  cache: { update(entry: Entry): void }
  backbone: Pick<Backbone, 'renewWatch'>
  subscriptions: { changed(entry: Entry, change: Change): void }
  now: () => number
}

export function createOwnValueTokens({ ownValues, cache, backbone, subscriptions, now }: Deps) {
  /** Viewers whose token the fetcher must be told of, when it is time. */
  const due = new Set<Viewer>()
  const saidAtMs = new WeakMap<Viewer, number>()

  const isTime = (viewer: Viewer) => now() - (saidAtMs.get(viewer) ?? Number.NEGATIVE_INFINITY) >= RENEWAL_MS

  function say(viewer: Viewer) {
    saidAtMs.set(viewer, now())
    for (const entry of ownValues.of(viewer).keys()) {
      if (entry.subscriptions.length > 0 && ownValues.hasNewToken(entry)) backbone.renewWatch(entry.wireKey)
    }
  }

  /** @param hasToken whether its user has one that may be valid */
  function letGo(entry: Entry, hasToken: boolean) {
    forget(entry)
    entry.failure = hasToken ? undefined : { problem: tokenExpired, atMs: now(), isLocal: false }
    // The fetcher is told that there is no token, or which one replaces it.
    if (entry.subscriptions.length > 0) backbone.renewWatch(entry.wireKey)
    if (!hasToken) subscriptions.changed(entry, 'failed')
    // Removes the entry if nobody wants it.
    cache.update(entry)
  }

  return {
    /** The viewer's values are to be asked for with another token: the fetcher is told, now or when it is time. */
    renewed(viewer: Viewer) {
      if (ownValues.of(viewer).size === 0) return
      if (isTime(viewer)) say(viewer)
      else due.add(viewer)
    },

    /** Tells the fetcher of the tokens that were renewed since. */
    sweep() {
      for (const viewer of due) {
        if (!isTime(viewer)) continue
        due.delete(viewer)
        say(viewer)
      }
    },

    /** One of the viewer's tokens has expired: values fetched with it are dropped. */
    expired(viewer: Viewer) {
      const digests = viewer.tokens.map(({ digest }) => digest)
      for (const [entry, { askedWith }] of [...ownValues.of(viewer)]) {
        if (askedWith === undefined || !digests.includes(askedWith)) letGo(entry, viewer.tokens.some(isUsed))
      }
    },

    /** The viewer's tokens were revoked, or the viewer was forgotten: all its own values are dropped. */
    ended(viewer: Viewer) {
      for (const entry of [...ownValues.of(viewer).keys()]) letGo(entry, viewer.tokens.some(isUsed))
    },
  }
}
