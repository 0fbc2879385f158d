// Everything a client can ask.
import { createGet } from './get.js'
import { createPing } from './ping.js'
import { createSubscribe } from './subscribe.js'
import { createUnsubscribe } from './unsubscribe.js'

/**
 * @typedef {import('@keycast/protocol').ClientMessage} ClientMessage
 * @typedef {import('../sessions/session.js').Session} Session
 *
 * @typedef {object} HandlerDeps
 * @property {import('../keys/values.js').Values} values
 * @property {import('../keys/subscriptions.js').Subscriptions} subscriptions
 * @property {import('../delivery/outbox.js').Outbox} outbox
 * @property {(session: Session, tokens: number) => void} charge for what a message cost beyond its size; may end the session
 * @property {Pick<ReturnType<typeof import('../sessions/rate-limit.js').createLimits>, 'keysWaitMs' | 'takeKeys'>} limits
 * @property {import('../metrics.js').Counts} counts
 * @property {() => number} now monotonic, in milliseconds
 */

/** @param {HandlerDeps} deps */
export function createHandlers(deps) {
  const get = createGet(deps)
  const subscribe = createSubscribe(deps)
  const unsubscribe = createUnsubscribe(deps)
  const ping = createPing(deps)

  /**
   * @param {Session} session
   * @param {ClientMessage} message
   */
  function handle(session, message) {
    deps.counts.received[message.type]++
    switch (message.type) {
      case 'get':
        return get(session, message, deps.now())
      case 'subscribe':
        return subscribe(session, message)
      case 'unsubscribe':
        return unsubscribe(session, message)
      case 'ping':
        return ping(session, message)
      default:
        throw unknownMessage(message)
    }
  }

  return { handle, get }
}

/** @param {never} message a message somebody read without writing its handler: fails the type check */
function unknownMessage(message) {
  return new Error(`no handler for ${JSON.stringify(message)}`)
}
