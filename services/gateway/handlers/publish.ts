// Publishes a message into a room. The answer follows when the journal has kept it, or surely has not.

/** @param {Pick<import('./index.ts').HandlerDeps, 'publishes'>} deps */
export const createPublish = ({ publishes }) =>
  /**
   * @param {import('../sessions/session.ts').Session} session
   * @param {import('@keycast/protocol').Publish} message
   */
  function publish(session, message) {
    return publishes.fromSession(session, message)
  }
