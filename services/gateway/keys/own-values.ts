// Values that differ per user (`per: user`): each has an entry per viewer of the key, under its viewer key, and may be kept
// while this gateway holds a token of its user.
import { ANONYMOUS_VIEWER, viewerKey } from '@keycast/backbone'
import { namespaceOf } from '@keycast/protocol'
import { chooseCredentials, hasTokenLeft, newTokenChoice, noteRefused } from '../access/backend/token-choice.ts'

/**
 * @typedef {import('./entry.ts').Entry} Entry
 * @typedef {import('../access/backend/token-choice.ts').TokenChoice} TokenChoice
 * @typedef {import('../access/backend/viewers.ts').Viewer} Viewer
 * @typedef {ReturnType<typeof createOwnValues>} OwnValues
 */

/** @type {ReadonlyMap<Entry, TokenChoice>} */
const NONE = new Map()

/**
 * @param {object} deps
 * @param {import('@keycast/service').Namespaces} deps.namespaces
 * @param {Pick<import('../access/backend/viewers.ts').Viewers, 'named'>} deps.viewers
 * @param {() => number} deps.wallNow in milliseconds since 1970
 */
export function createOwnValues({ namespaces, viewers, wallNow }) {
  /** By the viewer's name. @type {Map<string, Map<Entry, TokenChoice>>} */
  const byViewer = new Map()
  let count = 0

  /** Whether each user has a value of their own under the key. @param {string} key that passed the gate */
  const areOf = key => namespaces.get(namespaceOf(key))?.isPerUser === true

  /**
   * @template T
   * @param {Entry | undefined} entry
   * @param {(viewer: Viewer, choice: TokenChoice, wallNowMs: number) => T} decide
   * @returns {T | undefined} the viewer; `undefined` if the value is the same for all
   */
  function choosing(entry, decide) {
    if (entry?.viewer === undefined) return undefined
    const viewer = viewers.named(entry.viewer)
    const choice = byViewer.get(entry.viewer)?.get(entry)
    return viewer && choice && decide(viewer, choice, wallNow())
  }

  return {
    areOf,

    /**
     * The key under which a viewer's value is stored and asked for.
     *
     * @param {Viewer | undefined} viewer
     * @param {string} key
     */
    wireKeyOf(viewer, key) {
      if (!areOf(key)) return key
      // No viewer: the caller forgot to say for whom it asks.
      if (!viewer) throw new Error(`no viewer for ${key}`)
      return viewerKey(key, viewer.name)
    },

    /** @param {Entry} entry */
    opened(entry) {
      if (entry.viewer === undefined) return
      const entries = byViewer.get(entry.viewer)
      if (entries) entries.set(entry, newTokenChoice())
      else byViewer.set(entry.viewer, new Map([[entry, newTokenChoice()]]))
      count++
    },

    /** @param {Entry} entry */
    removed(entry) {
      if (entry.viewer === undefined) return
      const entries = byViewer.get(entry.viewer)
      if (!entries?.delete(entry)) return
      count--
      if (entries.size === 0) byViewer.delete(entry.viewer)
    },

    /** Whether an entry that nobody wants may stay. @param {Entry} entry */
    mayKeep: ({ viewer }) =>
      viewer === undefined || viewer === ANONYMOUS_VIEWER || (viewers.named(viewer)?.tokens.length ?? 0) > 0,

    /**
     * The token with which the backend is asked for a viewer's own value.
     *
     * @param {Entry | undefined} entry
     * @returns {import('@keycast/backbone').Credentials | undefined}
     */
    credentialsFor(entry) {
      return choosing(entry, chooseCredentials)
    },

    /**
     * The backend refused a token of the user.
     *
     * @param {Entry} entry
     * @param {string} [digest] of the token
     * @returns {boolean} whether to ask the backend again with another token
     */
    noteRefused: (entry, digest) =>
      choosing(entry, (viewer, choice, wallNowMs) => noteRefused(viewer, choice, wallNowMs, digest)) === true,

    /** Whether the user has another token than the one last asked with, which has expired. @param {Entry} entry */
    hasTokenLeft: entry => choosing(entry, hasTokenLeft) === true,

    /**
     * The viewer's entries, each with the token last used for it.
     *
     * @param {Viewer} viewer @returns {ReadonlyMap<Entry, Readonly<TokenChoice>>}
     */
    of: viewer => byViewer.get(viewer.name) ?? NONE,

    /** The number of viewers' values stored for a key. For operators: it walks over all. @param {string} key */
    countOf(key) {
      let held = 0
      for (const entries of byViewer.values()) for (const entry of entries.keys()) if (entry.key === key) held++
      return held
    },

    stats: () => ({ ownValues: count }),
  }
}
