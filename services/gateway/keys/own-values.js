// Values that differ per user (`per: user`): each has an entry per viewer of the key, under its viewer key, and may be kept
// while this gateway holds a token of its user.
import { ANONYMOUS_VIEWER, viewerKey } from '@keycast/backbone'
import { namespaceOf } from '@keycast/protocol'
import { credentialsOf } from '../access/backend/viewers.js'

/**
 * @typedef {import('./entry.js').Entry} Entry
 * @typedef {import('../access/backend/viewers.js').Viewer} Viewer
 * @typedef {ReturnType<typeof createOwnValues>} OwnValues
 */

/** @type {ReadonlySet<Entry>} */
const NONE = new Set()

/**
 * @param {object} deps
 * @param {import('@keycast/service').Namespaces} deps.namespaces
 * @param {Pick<import('../access/backend/viewers.js').Viewers, 'named'>} deps.viewers
 * @param {() => number} deps.wallNow in milliseconds since 1970
 */
export function createOwnValues({ namespaces, viewers, wallNow }) {
  /** By the viewer's name. @type {Map<string, Set<Entry>>} */
  const byViewer = new Map()
  let count = 0

  /** Whether each user has a value of their own under the key. @param {string} key that passed the check of access.js */
  const areOf = key => namespaces.get(namespaceOf(key))?.isPerUser === true

  return {
    areOf,

    /**
     * Under what a viewer's value of a key is held and asked for.
     *
     * @param {Viewer | undefined} viewer
     * @param {string} key
     */
    wireKeyOf(viewer, key) {
      if (!areOf(key)) return key
      // Without a viewer a door forgot to say for whom it asks.
      if (!viewer) throw new Error(`no viewer for ${key}`)
      return viewerKey(key, viewer.name)
    },

    /** @param {Entry} entry */
    opened(entry) {
      if (entry.viewer === undefined) return
      const entries = byViewer.get(entry.viewer)
      if (entries) entries.add(entry)
      else byViewer.set(entry.viewer, new Set([entry]))
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
      viewer === undefined || viewer === ANONYMOUS_VIEWER || viewers.named(viewer)?.verified !== undefined,

    /**
     * With what a backend is asked for a viewer's own value.
     *
     * @param {Entry | undefined} entry
     * @returns {import('@keycast/backbone').Credentials | undefined}
     */
    credentialsFor(entry) {
      const viewer = entry?.viewer === undefined ? undefined : viewers.named(entry.viewer)
      return viewer && credentialsOf(viewer, wallNow())
    },

    /** @param {Viewer} viewer @returns {ReadonlySet<Entry>} */
    of: viewer => byViewer.get(viewer.name) ?? NONE,

    /** How many viewers' values of a key are held. For operators: it looks at all. @param {string} key */
    countOf(key) {
      let held = 0
      for (const entries of byViewer.values()) for (const entry of entries) if (entry.key === key) held++
      return held
    },

    stats: () => ({ ownValues: count }),
  }
}
