// For whom backends are asked: each user is one viewer, however many sessions and tokens they have, and all who came
// without a token are one together. A viewer has the token that is valid longest, unless its backend refused that one.
import { createHash } from 'node:crypto'
import { ANONYMOUS_VIEWER } from '@keycast/backbone'
import { createUniqueQueue } from '@keycast/service'

/**
 * @typedef {import('../tokens/tokens.js').Verified} Verified
 * @typedef {ReturnType<typeof createViewers>} Viewers
 *
 * @typedef {object} Viewer
 * @property {string | undefined} user `undefined` for all without a token
 * @property {string} name of the viewer beyond this gateway: the user's own is nobody else's business
 * @property {Verified | undefined} verified its token
 * @property {Verified | undefined} other another one of its tokens, for when a backend refuses that
 * @property {number} expiresAtMs when `verified` expires, in milliseconds since 1970; never for those without a token
 * @property {number} takes how many tokens it has had: tells one from the next
 * @property {number} replacedTake which token, by `takes`, came in the place of one that was refused
 * @property {import('./bearer.js').Bearer | undefined} refused the token that a backend refused last
 * @property {number} replaceableAtMs from when on a token that a backend refused may give way to one that is not valid longer
 * @property {boolean} isExpired whether `verified` has expired and `onExpired` was called
 * @property {number} sessions
 * @property {Map<string, import('./decisions.js').Decision>} decisions by key; decisions.js, as the next two
 * @property {number} asking how many questions about it are under way
 * @property {import('@keycast/service').UniqueQueue<import('./decisions.js').Decision>} queued those that wait to be
 *   asked
 */

/** Viewers without a session are those of HTTP requests. With their tokens they take some 10 MB, at worst 50. */
const IDLE_MAX = 4_000

/** Programs of one user that poll by turns with two tokens, both refused, would else have the backend asked each time. */
const REPLACING_MS = 10_000

/**
 * @param {object} deps
 * @param {boolean} deps.isNeeded whether some namespace has its backend asked for viewers
 * @param {(viewer: Viewer) => void} deps.onForgotten nothing of the viewer is to be kept any more
 * @param {(viewer: Viewer) => void} deps.onRenewed the viewer has another token
 * @param {(viewer: Viewer) => void} deps.onExpired its token is not valid any more, and its sessions are still there
 * @param {() => number} deps.wallNow in milliseconds since 1970
 */
export function createViewers({ isNeeded, onForgotten, onRenewed, onExpired, wallNow }) {
  /** @type {Map<string, Viewer>} */
  const users = new Map()
  /** The same by the name that they have beyond this gateway. @type {Map<string, Viewer>} */
  const names = new Map()
  /** Those without a session, the one used longest ago first. @type {import('@keycast/service').UniqueQueue<Viewer>} */
  const idle = createUniqueQueue()
  const anonymous = newViewer(undefined)
  names.set(anonymous.name, anonymous)

  /** @param {string} user @returns {Viewer} */
  function find(user) {
    const known = users.get(user)
    if (known) return known
    const viewer = newViewer(user)
    users.set(user, viewer)
    names.set(viewer.name, viewer)
    return viewer
  }

  /** @param {Viewer} viewer */
  function rest(viewer) {
    idle.delete(viewer)
    idle.add(viewer)
    while (idle.size > IDLE_MAX) forget(/** @type {Viewer} */ (idle.take()))
  }

  /** @param {Viewer} viewer */
  function forget(viewer) {
    users.delete(/** @type {string} */ (viewer.user))
    names.delete(viewer.name)
    idle.delete(viewer)
    onForgotten(viewer)
  }

  /** @param {Viewer} viewer @param {Verified} verified @returns {boolean} whether it is asked with from now on */
  function take(viewer, verified) {
    const { verified: current, refused } = viewer
    if (!isBetter(viewer, verified)) {
      const isKnown = current?.bearer?.isSameAs(verified.bearer) || refused?.isSameAs(verified.bearer)
      if (!isKnown) viewer.other = verified
      return false
    }
    viewer.other = refused?.isSameAs(current?.bearer) ? undefined : current
    viewer.verified = verified
    viewer.takes++
    viewer.expiresAtMs = verified.expiresAtMs
    viewer.isExpired = false
    onRenewed(viewer)
    return true
  }

  /**
   * Whether a token is to be asked with in the place of the one that the viewer has.
   *
   * @param {Viewer} viewer
   * @param {Verified} verified
   */
  function isBetter(viewer, verified) {
    const isLonger = verified.expiresAtMs > viewer.expiresAtMs
    const nowMs = wallNow()
    const { refused } = viewer
    if (!refused || viewer.expiresAtMs <= nowMs) return isLonger
    // However long it is valid, the backend would refuse it again.
    if (refused.isSameAs(verified.bearer)) return false
    if (!refused.isSameAs(viewer.verified?.bearer)) return isLonger
    if (isLonger) return true
    if (nowMs < viewer.replaceableAtMs) return false
    viewer.replaceableAtMs = nowMs + REPLACING_MS
    return true
  }

  /**
   * @param {Verified | undefined} verified a token that came now
   * @returns {Viewer | undefined} `undefined` where no backend is ever asked
   */
  function of(verified) {
    if (!isNeeded) return undefined
    if (!verified) return anonymous
    const viewer = find(verified.user)
    take(viewer, verified)
    if (viewer.sessions === 0) rest(viewer)
    return viewer
  }

  return {
    isNeeded,
    of,

    /** @param {string} name beyond this gateway @returns {Viewer | undefined} */
    named: name => names.get(name),

    /**
     * A backend refused the viewer's token, perhaps because it was revoked there: any other token of the user is better.
     *
     * @param {Viewer | undefined} viewer
     * @returns {boolean} whether there is one, which the backend is to be asked with
     */
    noteRefused(viewer) {
      if (!viewer?.verified) return false
      viewer.refused = viewer.verified.bearer
      const { other } = viewer
      if (!other || other.expiresAtMs <= wallNow() || !take(viewer, other)) return false
      viewer.replacedTake = viewer.takes
      viewer.replaceableAtMs = wallNow() + REPLACING_MS
      return true
    },

    /** Whether refusals that come now may be of a token that was refused and replaced. @param {Viewer} viewer */
    isReplacedLately: viewer => viewer.replacedTake === viewer.takes && wallNow() < viewer.replaceableAtMs,

    /** A session is this viewer's. @param {Viewer | undefined} viewer */
    enter(viewer) {
      if (!viewer) return
      viewer.sessions++
      idle.delete(viewer)
    },

    /** A session is this viewer's no more. @param {Viewer | undefined} viewer */
    leave(viewer) {
      if (!viewer) return
      viewer.sessions--
      if (viewer.sessions === 0 && viewer.user !== undefined) rest(viewer)
    },

    /**
     * Tokens were revoked: nothing more is done with them, or with what was had by them.
     *
     * @param {(verified: Verified) => boolean} isRevoked
     * @param {Iterable<{ verified: Verified | undefined, viewer: Viewer | undefined, ended: boolean }>} sessions
     */
    revoke(isRevoked, sessions) {
      /** @type {Set<Viewer>} */
      const touched = new Set()
      for (const viewer of users.values()) {
        if (viewer.other && isRevoked(viewer.other)) viewer.other = undefined
        if (!viewer.verified || !isRevoked(viewer.verified)) continue
        viewer.verified = undefined
        viewer.refused = undefined
        viewer.expiresAtMs = 0
        touched.add(viewer)
        onForgotten(viewer)
      }
      if (touched.size === 0) return
      // The user's other sessions go on with their own tokens.
      for (const { verified, viewer, ended } of sessions) {
        if (!ended && verified && viewer && touched.has(viewer)) take(viewer, verified)
      }
    },

    /** Lets go of tokens that are of no use, and of all that was had by them. */
    sweep() {
      const nowMs = wallNow()
      for (const viewer of users.values()) {
        if (viewer.expiresAtMs > nowMs) continue
        if (viewer.sessions === 0) forget(viewer)
        else if (!viewer.isExpired) {
          viewer.isExpired = true
          onExpired(viewer)
        }
      }
    },

    stats: () => ({ users: users.size }),
  }
}

/** @param {string | undefined} user @returns {Viewer} */
function newViewer(user) {
  return {
    user,
    name: user === undefined ? ANONYMOUS_VIEWER : createHash('sha256').update(user).digest('base64url'),
    verified: undefined,
    other: undefined,
    expiresAtMs: user === undefined ? Number.POSITIVE_INFINITY : 0,
    takes: 0,
    replacedTake: -1,
    refused: undefined,
    replaceableAtMs: Number.NEGATIVE_INFINITY,
    isExpired: false,
    sessions: 0,
    decisions: new Map(),
    asking: 0,
    queued: createUniqueQueue(),
  }
}

/**
 * What a backend is asked with for a viewer.
 *
 * @param {Viewer} viewer
 * @param {number} wallNowMs
 * @returns {import('@keycast/backbone').Credentials | undefined} `undefined` where its token has expired
 */
export function credentialsOf({ user, verified, expiresAtMs }, wallNowMs) {
  if (user === undefined) return {}
  if (!verified?.bearer || expiresAtMs <= wallNowMs) return undefined
  return { authorization: verified.bearer.authorization(), expiresAt: expiresAtMs }
}
