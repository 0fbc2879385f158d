// Revokes tokens: they are refused from now on, and the sessions that came with them end at once.
import type { Issued, Revocation } from './revocations.ts'

interface Deps {
  revocations: {
    add(revocation: Revocation, revokedAtMs?: number): 'added' | 'known' | 'full'
    isRevoked(token: Issued): boolean
  }
  viewers: { revoke(isRevoked: (token: Issued) => boolean, users: Iterable<string>): void }
  /** Returns how many there were. */
  endSessions: (isRevoked: (token: Issued) => boolean) => number
}

export function createRevoke({ revocations, viewers, endSessions }: Deps) {
  /** @returns the number of sessions ended */
  function apply(added: Revocation[]): number {
    const ended = endSessions(revocations.isRevoked)
    const users = added.flatMap(revocation => ('sub' in revocation ? [revocation.sub] : []))
    viewers.revoke(revocations.isRevoked, users)
    return ended
  }

  return {
    one(revocation: Revocation) {
      const outcome = revocations.add(revocation)
      return { outcome, sessions: outcome === 'added' ? apply([revocation]) : 0 }
    },

    /**
     * The same for several, each as of its time.
     *
     * @returns the number that the list had no room for
     */
    all(given: { revocation: Revocation; atMs: number }[]): { refused: number } {
      const outcomes = given.map(({ revocation, atMs }) => revocations.add(revocation, atMs))
      const added = given.filter((_, index) => outcomes[index] === 'added').map(({ revocation }) => revocation)
      if (added.length > 0) apply(added)
      return { refused: outcomes.filter(outcome => outcome === 'full').length }
    },
  }
}
