// Leaves a room. One that was not joined is left already.

/** @param {Pick<import('./index.ts').HandlerDeps, 'joins'>} deps */
export const createLeave = ({ joins }) =>
  /**
   * @param {import('../sessions/session.ts').Session} session
   * @param {import('@keycast/protocol').Leave} message
   */
  function leave(session, message) {
    joins.leave(session, message)
  }
