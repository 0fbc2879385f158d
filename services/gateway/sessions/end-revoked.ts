// Ends sessions whose tokens are revoked: at once, and nothing more is sent to them.

/**
 * @typedef {import('../access/revocations/revocations.ts').Revocation} Revocation
 */

/**
 * @param {object} deps
 * @param {Pick<import('../access/revocations/revocations.ts').Revocations, 'add' | 'isRevoked'>} deps.revocations
 * @param {Pick<import('./sessions.ts').Sessions, 'all' | 'end'>} deps.sessions
 * @param {Pick<ReturnType<typeof import('../access/backend/viewers.ts').createViewers>, 'revoke'>} deps.viewers
 */
export function createEndRevoked({ revocations, sessions, viewers }) {
  /** @param {Revocation[]} added @returns {number} the number of sessions ended */
  function endAll(added) {
    let ended = 0
    for (const session of sessions.all()) {
      if (session.ended || !session.verified || !revocations.isRevoked(session.verified)) continue
      sessions.end(session, 'revoked')
      ended++
    }
    const users = added.flatMap(revocation => ('sub' in revocation ? [revocation.sub] : []))
    viewers.revoke(revocations.isRevoked, sessions.all(), users)
    return ended
  }

  return {
    /** Refuses tokens from now on, and ends the sessions that came with them. @param {Revocation} revocation */
    add(revocation) {
      const outcome = revocations.add(revocation)
      return { outcome, sessions: outcome === 'added' ? endAll([revocation]) : 0 }
    },

    /**
     * The same for several, each as of its time.
     *
     * @param {{ revocation: Revocation, atMs: number }[]} given
     * @returns {{ refused: number }} the number that the list had no room for
     */
    addAll(given) {
      const outcomes = given.map(({ revocation, atMs }) => revocations.add(revocation, atMs))
      const added = given.filter((_, index) => outcomes[index] === 'added').map(({ revocation }) => revocation)
      if (added.length > 0) endAll(added)
      return { refused: outcomes.filter(outcome => outcome === 'full').length }
    },
  }
}
