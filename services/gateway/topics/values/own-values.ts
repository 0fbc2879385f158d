// Values that differ per user (`per: user`): each has an entry per viewer of the key, under its viewer key, and may be kept
// while this gateway knows a valid token of the viewer.
import { ANONYMOUS_VIEWER, type Credentials } from '@keycast/backbone'
import {
  chooseCredentials,
  hasNewToken,
  hasTokenLeft,
  newTokenChoice,
  noteRefused,
  type TokenChoice,
} from '../../access/backend/token-choice.ts'
import type { Viewer } from '../../access/backend/viewers.ts'
import type { Entry } from './cache.ts'

const NONE: ReadonlyMap<Entry, TokenChoice> = new Map()

interface Deps {
  viewers: { named(name: string): Viewer | undefined }
  wallNow: () => number
}

export function createOwnValues({ viewers, wallNow }: Deps) {
  /** By the viewer's name. */
  const byViewer = new Map<string, Map<Entry, TokenChoice>>()
  let count = 0

  /** @returns the viewer; `undefined` if the value is the same for all */
  function choosing<T>(
    entry: Entry | undefined,
    decide: (viewer: Viewer, choice: TokenChoice, wallNowMs: number) => T,
  ): T | undefined {
    if (entry?.viewer === undefined) return undefined
    const viewer = viewers.named(entry.viewer)
    const choice = byViewer.get(entry.viewer)?.get(entry)
    return viewer && choice && decide(viewer, choice, wallNow())
  }

  return {
    opened(entry: Entry) {
      if (entry.viewer === undefined) return
      const entries = byViewer.get(entry.viewer)
      if (entries) entries.set(entry, newTokenChoice())
      else byViewer.set(entry.viewer, new Map([[entry, newTokenChoice()]]))
      count++
    },

    removed(entry: Entry) {
      if (entry.viewer === undefined) return
      const entries = byViewer.get(entry.viewer)
      if (!entries?.delete(entry)) return
      count--
      if (entries.size === 0) byViewer.delete(entry.viewer)
    },

    /** Whether an entry that nobody wants may stay. */
    mayKeep: ({ viewer }: Entry) =>
      viewer === undefined || viewer === ANONYMOUS_VIEWER || (viewers.named(viewer)?.tokens.length ?? 0) > 0,

    /** The token with which the backend is asked for a viewer's own value. */
    credentialsFor(entry: Entry | undefined): Credentials | undefined {
      return choosing(entry, chooseCredentials)
    },

    /**
     * The backend refused a token of the user.
     *
     * @param digest of the token
     * @returns whether to ask the backend again with another token
     */
    noteRefused: (entry: Entry, digest?: string): boolean =>
      choosing(entry, (viewer, choice, wallNowMs) => noteRefused(viewer, choice, wallNowMs, digest)) === true,

    /** Whether the backend would be asked with another token than last. */
    hasNewToken: (entry: Entry) => choosing(entry, hasNewToken) === true,

    /** Whether the user has another token than the one last asked with, which has expired. */
    hasTokenLeft: (entry: Entry) => choosing(entry, hasTokenLeft) === true,

    /** The viewer's entries, each with the token last used for it. */
    of: (viewer: Viewer): ReadonlyMap<Entry, Readonly<TokenChoice>> => byViewer.get(viewer.name) ?? NONE,

    /** The number of viewers' values stored for a key. For operators: it walks over all. */
    countOf(key: string) {
      let held = 0
      for (const entries of byViewer.values()) for (const entry of entries.keys()) if (entry.key === key) held++
      return held
    },

    stats: () => ({ ownValues: count }),
  }
}
