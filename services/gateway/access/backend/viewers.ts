// For whom backends are asked: each user is one viewer, however many sessions and tokens they have, and all who came
// without a token are one together. With which of a viewer's tokens a key is asked for, token-choice.ts says.
import { createHash } from 'node:crypto'
import { ANONYMOUS_VIEWER } from '@keycast/backbone'
import { createUniqueQueue } from '@keycast/service'
import { createRecentMap } from '../recent-map.ts'

/**
 * @typedef {import('../tokens/tokens.ts').Verified} Verified
 * @typedef {Verified & { bearer: import('./bearer.ts').Bearer }} Token
 * @typedef {ReturnType<typeof createViewers>} Viewers
 *
 * @typedef {object} Viewer
 * @property {string | undefined} user `undefined` for all without a token
 * @property {string} name of the viewer beyond this gateway: the user's own is nobody else's business
 * @property {Token[]} tokens the one valid longest first; some may have expired since they were last looked at
 * @property {number} revokedAtMs when tokens of it were last revoked, on the monotonic clock; -Infinity if never
 * @property {number} sessions
 * @property {Map<string, import('./verdicts.ts').Decision>} decisions by key; decisions.ts
 */

/** Viewers without a session are those of HTTP requests. With their tokens they take some 10 MB, at worst 150. */
const IDLE_MAX = 4_000

/** Of whom it is known when their tokens were revoked. At some 100 bytes each they take 5 MB. */
const REVOKED_MAX = 50_000

/** Of one viewer. A key that it may not read costs the backend a question for each. */
const TOKENS_MAX = 4

/**
 * @param {object} deps
 * @param {boolean} deps.isNeeded whether some namespace has its backend asked for viewers
 * @param {(viewer: Viewer) => void} deps.onForgotten nothing of the viewer is to be kept any more
 * @param {(viewer: Viewer) => void} deps.onRenewed the viewer has a token that is valid longer than those before
 * @param {(viewer: Viewer) => void} deps.onExpired one of its tokens is not valid any more, and its sessions are still there
 * @param {() => number} deps.now monotonic, in milliseconds
 * @param {() => number} deps.wallNow in milliseconds since 1970
 */
export function createViewers({ isNeeded, onForgotten, onRenewed, onExpired, now, wallNow }) {
  /** @type {Map<string, Viewer>} */
  const users = new Map()
  /** The same by the name that they have beyond this gateway. @type {Map<string, Viewer>} */
  const names = new Map()
  /** Those without a session, the one used longest ago first. @type {import('@keycast/service').UniqueQueue<Viewer>} */
  const idle = createUniqueQueue()
  /**
   * By user. Longer than the viewers themselves: one whose sessions were all ended is forgotten, and comes again with
   * another token.
   *
   * @type {import('../recent-map.ts').RecentMap<string, number>}
   */
  const revokedAt = createRecentMap(REVOKED_MAX)
  const anonymous = newViewer(undefined)
  names.set(anonymous.name, anonymous)

  /** @param {string} user @returns {Viewer} */
  function find(user) {
    const known = users.get(user)
    if (known) return known
    const viewer = newViewer(user, revokedAt.get(user))
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

  /** @param {string} user */
  function noteRevoked(user) {
    const nowMs = now()
    revokedAt.set(user, nowMs)
    const viewer = users.get(user)
    if (viewer) viewer.revokedAtMs = nowMs
  }

  /** @param {Viewer} viewer @param {Token} token */
  function take(viewer, token) {
    const { tokens } = viewer
    if (tokens.some(({ bearer }) => bearer.digest === token.bearer.digest)) return
    const index = tokens.findIndex(({ expiresAtMs }) => expiresAtMs < token.expiresAtMs)
    tokens.splice(index === -1 ? tokens.length : index, 0, token)
    if (tokens.length > TOKENS_MAX) tokens.pop()
    if (tokens[0] === token) onRenewed(viewer)
  }

  /**
   * @param {Verified | undefined} verified a token that came now
   * @returns {Viewer | undefined} `undefined` where no backend is ever asked
   */
  function of(verified) {
    if (!isNeeded) return undefined
    if (!verified) return anonymous
    const viewer = find(verified.user)
    take(viewer, /** @type {Token} */ (verified))
    if (viewer.sessions === 0) rest(viewer)
    return viewer
  }

  return {
    isNeeded,
    of,

    /** @param {string} name beyond this gateway @returns {Viewer | undefined} */
    named: name => names.get(name),

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
     * Tokens were revoked: they are used no more, and values fetched with them are dropped.
     *
     * @param {(verified: Verified) => boolean} isRevoked
     * @param {Iterable<{ verified: Verified | undefined, viewer: Viewer | undefined, ended: boolean }>} sessions
     * @param {Iterable<string>} named users whom a revocation names, whether or not they were here
     */
    revoke(isRevoked, sessions, named) {
      if (!isNeeded) return
      for (const user of named) noteRevoked(user)
      /** @type {Set<Viewer>} */
      const touched = new Set()
      for (const viewer of users.values()) if (keep(viewer, token => !isRevoked(token))) touched.add(viewer)
      for (const { user } of touched) noteRevoked(/** @type {string} */ (user))
      if (touched.size === 0) return
      // Of the user's other sessions, whose tokens there was no room for.
      for (const { verified, viewer, ended } of sessions) {
        if (!ended && verified && viewer && touched.has(viewer)) take(viewer, /** @type {Token} */ (verified))
      }
      for (const viewer of touched) onForgotten(viewer)
    },

    /** Drops tokens that are of no use, and all values fetched with them. */
    sweep() {
      const nowMs = wallNow()
      for (const viewer of users.values()) {
        const hasExpired = keep(viewer, ({ expiresAtMs }) => expiresAtMs > nowMs)
        if (viewer.tokens.length === 0 && viewer.sessions === 0) forget(viewer)
        else if (hasExpired) onExpired(viewer)
      }
    },

    stats: () => ({ users: users.size }),
  }
}

/**
 * Keeps some of a viewer's tokens.
 *
 * @param {Viewer} viewer
 * @param {(token: Token) => boolean} isKept
 * @returns {boolean} whether others went
 */
function keep(viewer, isKept) {
  const kept = viewer.tokens.filter(isKept)
  if (kept.length === viewer.tokens.length) return false
  viewer.tokens = kept
  return true
}

/** @param {string | undefined} user @param {number} [revokedAtMs] @returns {Viewer} */
function newViewer(user, revokedAtMs = Number.NEGATIVE_INFINITY) {
  return {
    user,
    name: user === undefined ? ANONYMOUS_VIEWER : createHash('sha256').update(user).digest('base64url'),
    tokens: [],
    revokedAtMs,
    sessions: 0,
    decisions: new Map(),
  }
}
