// Changes of tokens and users' own values. Fetches use a token that is valid longer as soon as there is one. Values
// that were fetched with a token that ended are dropped, and fetched again with another.
import type { Backbone } from '@keycast/backbone'
import type { Problem } from '@keycast/protocol'
import { createRecent } from '@keycast/service'
import type { TokenChoice } from '../../access/backend/token-choice.ts'
import { isUsed, type Viewer } from '../../access/backend/viewers.ts'
import type { Change } from './answers.ts'
import { type Entry, forget } from './cache.ts'

/**
 * A viewer's values are looked through at most this often for one reason: a client may bring another token as often as it is
 * given tokens, or each of a few again and again, and have thousands of keys.
 */
const LOOK_MS = 1_000

/** The client may ask again after this time: its user may have another token by then. */
const RETRY_MS = 1_000

/** A node that found a token expired which is valid here is asked again after this time: its clock may have been wrong. */
const DOUBT_MS = 10_000

const tokenExpired: Problem = { code: 'token_expired', retryAfterMs: RETRY_MS }

interface Deps {
  ownValues: {
    of(viewer: Viewer): ReadonlyMap<Entry, Readonly<TokenChoice>>
    hasNewToken(entry: Entry): boolean
    credentialsFor(entry: Entry): unknown
  }
  cache: { update(entry: Entry): void }
  backbone: Pick<Backbone, 'renewWatch'>
  subscriptions: { changed(entry: Entry, change: Change): void }
  now: () => number
}

export function createOwnValueTokens({ ownValues, cache, backbone, subscriptions, now }: Deps) {
  const renewals = seldom(say)
  const expiries = seldom(dropExpired)
  /** Values whose token a node found expired, since when. */
  const doubted = createRecent<Entry, number>()

  /** Of one viewer at most once in {@link LOOK_MS}: at once, or with a later sweep. */
  function seldom(look: (viewer: Viewer) => void) {
    const due = new Set<Viewer>()
    const lookedAtMs = new WeakMap<Viewer, number>()

    function take(viewer: Viewer) {
      if (ownValues.of(viewer).size === 0) return due.delete(viewer)
      if (now() - (lookedAtMs.get(viewer) ?? Number.NEGATIVE_INFINITY) < LOOK_MS) return due.add(viewer)
      due.delete(viewer)
      lookedAtMs.set(viewer, now())
      return look(viewer)
    }

    return {
      take,
      sweep: () => due.forEach(take),
      cancel: (viewer: Viewer) => due.delete(viewer),
    }
  }

  /** Tells the fetcher which values are to be asked for with another token. */
  function say(viewer: Viewer) {
    for (const entry of ownValues.of(viewer).keys()) {
      if (entry.subscriptions.length > 0 && ownValues.hasNewToken(entry)) backbone.renewWatch(entry.wireKey)
    }
  }

  /** Drops values that were fetched with a token that is known no more. */
  function dropExpired(viewer: Viewer) {
    const digests = viewer.tokens.map(({ digest }) => digest)
    for (const [entry, { askedWith }] of [...ownValues.of(viewer)]) {
      if (askedWith === undefined || !digests.includes(askedWith)) letGo(entry, viewer.tokens.some(isUsed))
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

  function askDoubted() {
    for (let next = doubted.oldest(); next && now() - next.value >= DOUBT_MS; next = doubted.oldest()) {
      const { key: entry } = next
      doubted.delete(entry)
      const isRefused = entry.failure?.problem.code === tokenExpired.code && entry.subscriptions.length > 0
      if (isRefused && ownValues.credentialsFor(entry)) backbone.renewWatch(entry.wireKey)
    }
  }

  return {
    /** A node found the token of the value expired. */
    doubt(entry: Entry) {
      doubted.set(entry, now())
    },

    /** The viewer's values are to be asked for with another token. */
    renewed: renewals.take,

    /** One of the viewer's tokens is known no more. */
    expired: expiries.take,

    /** Does what was not yet time. */
    sweep() {
      renewals.sweep()
      expiries.sweep()
      askDoubted()
    },

    /** The viewer's tokens were revoked, or the viewer was forgotten: all its own values are dropped. */
    ended(viewer: Viewer) {
      // One that comes later under its name has other tokens.
      expiries.cancel(viewer)
      for (const entry of [...ownValues.of(viewer).keys()]) letGo(entry, viewer.tokens.some(isUsed))
    },
  }
}
