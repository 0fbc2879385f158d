// Joins a room under a name. The answer follows when the journal has decided who has the name.

/** @param {Pick<import('./index.ts').HandlerDeps, 'joins'>} deps */
export const createJoin = ({ joins }) =>
  /**
   * @param {import('../sessions/session.ts').Session} session
   * @param {import('@keycast/protocol').Join} message
   */
  function join(session, message) {
    return joins.join(session, message)
  }
