// Ends sessions whose tokens are revoked: at once, and nothing more is sent to them.
import type { Revocation, Revocations } from '../access/revocations/revocations.ts'
import type { Sessions } from './sessions.ts'

interface Deps {
  revocations: Pick<Revocations, 'add' | 'isRevoked'>
  sessions: Pick<Sessions, 'all' | 'end'>
  viewers: Pick<ReturnType<typeof import('../access/backend/viewers.ts').createViewers>, 'revoke'>
}

export function createEndRevoked({ revocations, sessions, viewers }: Deps) {
  /** @returns the number of sessions ended */
  function endAll(added: Revocation[]): number {
    let ended = 0
    for (const session of sessions.all()) {
      if (session.ended || !session.verified || !revocations.isRevoked(session.verified)) continue
      sessions.end(session, 'revoked')
      ended++
    }
    const users = added.flatMap(revocation => ('sub' in revocation ? [revocation.sub] : []))
    viewers.revoke(revocations.isRevoked, users)
    return ended
  }

  return {
    /** Refuses tokens from now on, and ends the sessions that came with them. */
    add(revocation: Revocation) {
      const outcome = revocations.add(revocation)
      return { outcome, sessions: outcome === 'added' ? endAll([revocation]) : 0 }
    },

    /**
     * The same for several, each as of its time.
     *
     * @returns the number that the list had no room for
     */
    addAll(given: { revocation: Revocation; atMs: number }[]): { refused: number } {
      const outcomes = given.map(({ revocation, atMs }) => revocations.add(revocation, atMs))
      const added = given.filter((_, index) => outcomes[index] === 'added').map(({ revocation }) => revocation)
      if (added.length > 0) endAll(added)
      return { refused: outcomes.filter(outcome => outcome === 'full').length }
    },
  }
}
