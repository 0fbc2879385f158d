// For whom backends are asked: tokens of a user that backends judge alike (viewer-name.ts) are one viewer, however many
// sessions and tokens there are, and all who came without a token are one together. With which of a viewer's tokens a key is asked for, token-choice.ts says.
import { ANONYMOUS_VIEWER } from '@keycast/backbone'
import { createRecent, createUniqueQueue, type UniqueQueue } from '@keycast/service'
import type { Verified } from '../tokens/tokens.ts'
import type { Bearer } from './bearer.ts'
import type { Decision } from './verdicts.ts'

export type Token = Verified & { viewer: string; bearer: Bearer }

export type Viewers = ReturnType<typeof createViewers>

export interface Viewer {
  /** `undefined` for all without a token. */
  user: string | undefined
  /** See viewer-name.ts. */
  name: string
  /** The one valid longest first; some may have expired since they were last looked at. */
  tokens: Token[]
  /** When tokens of it were last revoked, on the monotonic clock; -Infinity if never. */
  revokedAtMs: number
  sessions: number
  /** By key; decisions.ts. */
  decisions: Map<string, Decision>
}

/** Viewers without a session are those of HTTP requests. With their tokens they take some 10 MB, at worst 150. */
const IDLE_MAX = 4_000

/** Of whom it is known when their tokens were revoked. At some 100 bytes each they take 5 MB. */
const REVOKED_MAX = 50_000

/** Of one viewer. A key that it may not read costs the backend a question for each. */
const TOKENS_MAX = 4

interface Deps {
  /** Whether some namespace has its backend asked for viewers. */
  isNeeded: boolean
  /** Nothing of the viewer is to be kept any more. */
  onForgotten: (viewer: Viewer) => void
  /** The viewer has a token that is valid longer than those before. */
  onRenewed: (viewer: Viewer) => void
  /** One of its tokens is not valid any more, and its sessions are still there. */
  onExpired: (viewer: Viewer) => void
  /** Monotonic, in milliseconds. */
  now: () => number
  /** In milliseconds since 1970. */
  wallNow: () => number
}

export function createViewers({ isNeeded, onForgotten, onRenewed, onExpired, now, wallNow }: Deps) {
  const byName = new Map<string, Viewer>()
  /** Those without a session, the one used longest ago first. */
  const idle: UniqueQueue<Viewer> = createUniqueQueue()
  /**
   * By user. Longer than the viewers themselves: one whose sessions were all ended is forgotten, and comes again with
   * another token.
   */
  const revokedAt = createRecent<string, number>(REVOKED_MAX)
  const anonymous = newViewer(undefined, ANONYMOUS_VIEWER)
  byName.set(anonymous.name, anonymous)

  function find({ user, viewer: name }: Token): Viewer {
    const known = byName.get(name)
    if (known) return known
    const viewer = newViewer(user, name, revokedAt.use(user))
    byName.set(name, viewer)
    return viewer
  }

  function rest(viewer: Viewer) {
    idle.delete(viewer)
    idle.add(viewer)
    while (idle.size > IDLE_MAX) forget(idle.take() as Viewer)
  }

  function forget(viewer: Viewer) {
    byName.delete(viewer.name)
    idle.delete(viewer)
    onForgotten(viewer)
  }

  /** What backends said of a token counts for others of its user no more: nobody knows which one a node asked with. */
  function noteRevoked(users: ReadonlySet<string>) {
    const nowMs = now()
    for (const user of users) revokedAt.set(user, nowMs)
    for (const viewer of byName.values()) if (users.has(viewer.user as string)) viewer.revokedAtMs = nowMs
  }

  function take(viewer: Viewer, token: Token) {
    const { tokens } = viewer
    if (tokens.some(({ bearer }) => bearer.digest === token.bearer.digest)) return
    const index = tokens.findIndex(({ expiresAtMs }) => expiresAtMs < token.expiresAtMs)
    tokens.splice(index === -1 ? tokens.length : index, 0, token)
    if (tokens.length > TOKENS_MAX) tokens.pop()
    if (tokens[0] === token) onRenewed(viewer)
  }

  /**
   * @param verified a token that came now
   * @returns `undefined` where no backend is ever asked
   */
  function of(verified: Verified | undefined): Viewer | undefined {
    if (!isNeeded) return undefined
    if (!verified) return anonymous
    const token = verified as Token
    const viewer = find(token)
    take(viewer, token)
    if (viewer.sessions === 0) rest(viewer)
    return viewer
  }

  return {
    isNeeded,
    of,

    /** @param name beyond this gateway */
    named: (name: string): Viewer | undefined => byName.get(name),

    /** A session is this viewer's. */
    enter(viewer: Viewer | undefined) {
      if (!viewer) return
      viewer.sessions++
      idle.delete(viewer)
    },

    /** A session is this viewer's no more. */
    leave(viewer: Viewer | undefined) {
      if (!viewer) return
      viewer.sessions--
      if (viewer.sessions === 0 && viewer.user !== undefined) rest(viewer)
    },

    /**
     * Tokens were revoked: they are used no more, and values fetched with them are dropped.
     *
     * @param named users whom a revocation names, whether or not they were here
     */
    revoke(
      isRevoked: (verified: Verified) => boolean,
      sessions: Iterable<{ verified: Verified | undefined; viewer: Viewer | undefined; ended: boolean }>,
      named: Iterable<string>,
    ) {
      if (!isNeeded) return
      const touched = new Set<Viewer>()
      for (const viewer of byName.values()) if (keep(viewer, token => !isRevoked(token))) touched.add(viewer)
      noteRevoked(new Set([...named, ...[...touched].map(({ user }) => user as string)]))
      if (touched.size === 0) return
      // Of the user's other sessions, whose tokens there was no room for.
      for (const { verified, viewer, ended } of sessions) {
        if (!ended && verified && viewer && touched.has(viewer)) take(viewer, verified as Token)
      }
      for (const viewer of touched) onForgotten(viewer)
    },

    /** Drops tokens that are of no use, and all values fetched with them. */
    sweep() {
      const nowMs = wallNow()
      for (const viewer of byName.values()) {
        if (viewer === anonymous) continue
        const hasExpired = keep(viewer, ({ expiresAtMs }) => expiresAtMs > nowMs)
        if (viewer.tokens.length === 0 && viewer.sessions === 0) forget(viewer)
        else if (hasExpired) onExpired(viewer)
      }
    },
  }
}

/**
 * Keeps some of a viewer's tokens.
 *
 * @returns whether others went
 */
function keep(viewer: Viewer, isKept: (token: Token) => boolean): boolean {
  const kept = viewer.tokens.filter(isKept)
  if (kept.length === viewer.tokens.length) return false
  viewer.tokens = kept
  return true
}

function newViewer(user: string | undefined, name: string, revokedAtMs: number = Number.NEGATIVE_INFINITY): Viewer {
  return {
    user,
    name,
    tokens: [],
    revokedAtMs,
    sessions: 0,
    decisions: new Map(),
  }
}
