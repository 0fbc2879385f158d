// For whom backends are asked: tokens of a user that backends judge alike (viewer-name.ts) are one viewer, however many
// sessions and tokens there are, and all who came without a token are one together. A token is kept while a session or a
// request uses it. With which of a viewer's tokens a key is asked for, token-choice.ts says.
import { ANONYMOUS_VIEWER } from '@keycast/backbone'
import { createRecent, createUniqueQueue, type UniqueQueue, type World } from '@keycast/service'
import type { Issued } from '../revocations/revocations.ts'
import type { Verified } from '../tokens/tokens.ts'
import type { Bearer } from './bearer.ts'
import type { Decision } from './verdicts.ts'

export interface Token extends Issued {
  digest: string
  signedBy: Verified['signedBy']
  expiresAtMs: number
  /** To ask with, while sessions and requests use the token. Answers got with it are good until it expires. */
  bearer: Bearer | undefined
  uses: number
}

/** A token that came, where backends are asked. */
type Brought = Verified & { viewer: string; bearer: Bearer }

export type Viewers = ReturnType<typeof createViewers>

export interface Viewer {
  /** `undefined` for all without a token. */
  user: string | undefined
  /** See viewer-name.ts. */
  name: string
  /** The one valid longest first; some may have expired since they were last looked at, or be used no more. */
  tokens: Token[]
  /** When tokens of it were last revoked, on the monotonic clock; -Infinity if never. */
  revokedAtMs: number
  /** By sessions and requests. */
  uses: number
  /** By key; decisions.ts. */
  decisions: Map<string, Decision>
}

/** Viewers whose sessions and requests are over may come again. At some 1 KB each they take 4 MB. */
const IDLE_MAX = 4_000

/** Of whom it is known when their tokens were revoked. At some 100 bytes each they take 5 MB. */
const REVOKED_MAX = 50_000

/** Of one viewer, that nobody uses any more. */
const RESTING_MAX = 4

interface Deps extends Pick<World, 'now' | 'wallNow'> {
  /** Whether some namespace has its backend asked for viewers. */
  isNeeded: boolean
  /** Nothing of the viewer is to be kept any more. */
  onForgotten: (viewer: Viewer) => void
  /** The viewer's own values are to be asked for with another of its tokens. */
  onRenewed: (viewer: Viewer) => void
  /** One of its tokens is known no more. */
  onExpired: (viewer: Viewer) => void
}

export function createViewers({ isNeeded, onForgotten, onRenewed, onExpired, now, wallNow }: Deps) {
  const byName = new Map<string, Viewer>()
  /** Those that nobody uses, the one used longest ago first. */
  const idle: UniqueQueue<Viewer> = createUniqueQueue()
  /**
   * By user. Longer than the viewers themselves: one whose sessions were all ended is forgotten, and comes again with
   * another token.
   */
  const revokedAt = createRecent<string, number>(REVOKED_MAX)
  const anonymous = newViewer(undefined, ANONYMOUS_VIEWER)
  byName.set(anonymous.name, anonymous)

  function find({ user, viewer: name }: Brought): Viewer {
    const known = byName.get(name)
    if (known) return known
    const viewer = newViewer(user, name, revokedAt.use(user))
    byName.set(name, viewer)
    return viewer
  }

  function keepIdle(viewer: Viewer) {
    idle.delete(viewer)
    idle.add(viewer)
    while (idle.size > IDLE_MAX) forget(idle.take() as Viewer)
  }

  function forget(viewer: Viewer) {
    byName.delete(viewer.name)
    idle.delete(viewer)
    onForgotten(viewer)
  }

  /** Answers for one token no longer count for others of its user: nobody knows which one a node asked with. */
  function noteRevoked(users: ReadonlySet<string>) {
    const nowMs = now()
    for (const user of users) revokedAt.set(user, nowMs)
    for (const viewer of byName.values()) if (users.has(viewer.user as string)) viewer.revokedAtMs = nowMs
  }

  function use(viewer: Viewer, { user, issuedAt, jti, signedBy, expiresAtMs, bearer }: Brought) {
    const { tokens } = viewer
    const first = tokens.find(isUsed)
    const { digest } = bearer
    let token = tokens.find(each => each.digest === digest)
    if (!token) {
      token = { user, issuedAt, jti, signedBy, expiresAtMs, digest, bearer, uses: 0 }
      const index = tokens.findIndex(each => each.expiresAtMs < expiresAtMs)
      tokens.splice(index === -1 ? tokens.length : index, 0, token)
    }
    token.bearer = bearer
    token.uses++
    if (tokens.find(isUsed) !== first) onRenewed(viewer)
  }

  /** @param token that nobody uses any more */
  function letGo(viewer: Viewer, token: Token) {
    token.bearer = undefined
    const resting = viewer.tokens.filter(each => !isUsed(each))
    if (resting.length > RESTING_MAX && keep(viewer, each => each !== resting[RESTING_MAX])) onExpired(viewer)
    if (viewer.tokens.some(isUsed)) onRenewed(viewer)
  }

  return {
    /**
     * A session or request is a viewer's, until {@link leave}.
     *
     * @param verified the token that it brings
     * @returns `undefined` where no backend is ever asked
     */
    enter(verified: Verified | undefined): Viewer | undefined {
      if (!isNeeded) return undefined
      const brought = verified as Brought | undefined
      const viewer = brought ? find(brought) : anonymous
      viewer.uses++
      idle.delete(viewer)
      if (brought) use(viewer, brought)
      return viewer
    },

    /** It ended, or brought another token. */
    leave(viewer: Viewer | undefined, verified: Verified | undefined) {
      if (!viewer) return
      viewer.uses--
      const token = verified && viewer.tokens.find(({ digest }) => digest === verified.bearer?.digest)
      if (token && --token.uses === 0) letGo(viewer, token)
      if (viewer.uses === 0 && viewer !== anonymous) keepIdle(viewer)
    },

    /** Those of a user, all without a token included where none is named. @param user with the prefix */
    *of(user: string | undefined): Generator<Viewer> {
      for (const viewer of byName.values()) if (user === undefined || viewer.user === user) yield viewer
    },

    /** @param name beyond this gateway */
    named: (name: string): Viewer | undefined => byName.get(name),

    /**
     * Tokens were revoked: they are used no more, and values fetched with them are dropped.
     *
     * @param named users whom a revocation names, whether or not they were here
     */
    revoke(isRevoked: (token: Token) => boolean, named: Iterable<string>) {
      if (!isNeeded) return
      const touched = new Set<Viewer>()
      for (const viewer of byName.values()) if (keep(viewer, token => !isRevoked(token))) touched.add(viewer)
      noteRevoked(new Set([...named, ...[...touched].map(({ user }) => user as string)]))
      for (const viewer of touched) onForgotten(viewer)
    },

    /** Drops tokens that are of no use, and all values fetched with them. */
    sweep() {
      const nowMs = wallNow()
      for (const viewer of byName.values()) {
        if (viewer === anonymous) continue
        const hasExpired = keep(viewer, ({ expiresAtMs }) => expiresAtMs > nowMs)
        if (viewer.tokens.length === 0 && viewer.uses === 0) forget(viewer)
        else if (hasExpired) onExpired(viewer)
      }
    },
  }
}

export const isUsed = ({ bearer }: Token) => bearer !== undefined

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
    uses: 0,
    decisions: new Map(),
  }
}
