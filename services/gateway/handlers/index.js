// Everything a client can ask, each request in a file of its own.
import { excerpt } from '@keycast/protocol'
import { createAuth } from './auth.js'
import { createGet } from './get.js'
import { createHistory } from './history.js'
import { createJoin } from './join.js'
import { createLeave } from './leave.js'
import { createPing } from './ping.js'
import { createPublish } from './publish.js'
import { createSubscribe } from './subscribe.js'
import { createUnsubscribe } from './unsubscribe.js'

/**
 * @typedef {import('@keycast/protocol').ClientMessage} ClientMessage
 * @typedef {import('../sessions/session.js').Session} Session
 *
 * @typedef {object} HandlerDeps
 * @property {Pick<import('../gate/gate.ts').Gate, 'enter' | 'recheck' | 'check'>} gate
 * @property {Pick<import('../access/identify.js').Identify, 'verify'>} identify
 * @property {Pick<import('../access/revocations/revocations.js').Revocations, 'isRevoked'>} revocations
 * @property {Pick<import('../sessions/accounts.js').Accounts, 'of' | 'hasRoom'>} accounts
 * @property {Pick<import('../sessions/credentials.js').Credentials, 'renew'>} credentials
 * @property {Pick<import('../keys/values.js').Values, 'fresh'>} values
 * @property {Pick<import('../keys/single-flight.js').SingleFlight, 'want'>} singleFlight
 * @property {import('../keys/admissions.js').Admissions} admissions
 * @property {import('../keys/subscriptions.js').Subscriptions} subscriptions
 * @property {Pick<import('../keys/endings.js').Endings, 'remove'>} endings
 * @property {Pick<import('../rooms/rooms.js').Rooms, 'isRoom' | 'announce' | 'finish' | 'stats'>} rooms
 * @property {Pick<import('../rooms/publishes.js').Publishes, 'fromSession'>} publishes
 * @property {Pick<import('../rooms/histories.js').Histories, 'read'>} histories
 * @property {Pick<import('../presence/joins.js').Joins, 'join' | 'leave'>} joins
 * @property {import('../delivery/outbox.js').Outbox} outbox
 * @property {Pick<import('../sessions/rate-limit.js').RateLimit, 'charge' | 'keysWaitMs' | 'chargeKeys'>} rateLimit
 * @property {number} getsWaitingMax of one session
 * @property {Pick<import('@keycast/service').Containment, 'guard'>} containment
 * @property {import('../counts.js').Counts} counts
 * @property {() => number} now monotonic, in milliseconds
 */

/** @param {HandlerDeps} deps */
export function createHandlers(deps) {
  const auth = createAuth(deps)
  const get = createGet(deps)
  const subscribe = createSubscribe(deps)
  const unsubscribe = createUnsubscribe(deps)
  const ping = createPing(deps)
  const publish = createPublish(deps)
  const history = createHistory(deps)
  const join = createJoin(deps)
  const leave = createLeave(deps)

  /**
   * @param {Session} session
   * @param {ClientMessage} message
   * @returns {unknown} a promise where some of the work is still to be done
   */
  function handle(session, message) {
    deps.counts.received[message.type]++
    switch (message.type) {
      case 'auth':
        return auth(session, message)
      case 'get':
        return get(session, message, deps.now())
      case 'subscribe':
        return subscribe(session, message)
      case 'unsubscribe':
        return unsubscribe(session, message)
      case 'ping':
        return ping(session, message)
      case 'publish':
        return publish(session, message)
      case 'history':
        return history(session, message)
      case 'join':
        return join(session, message)
      case 'leave':
        return leave(session, message)
      default:
        throw unknownMessage(message)
    }
  }

  /**
   * The client reads again: answers what waited for that.
   *
   * @param {Session} session
   */
  function resumeGets(session) {
    const deferred = session.deferredGets
    session.deferredGets = []
    // Some may have to wait again: for the fetcher, or because the first answers filled the socket.
    for (const { get: message, asOfMs } of deferred) answerNow(session, message, asOfMs)
  }

  const answerNow = deps.containment.guard(
    'session',
    (
      /** @type {Session} */ session,
      /** @type {import('../sessions/session.js').DeferredGet['get']} */ message,
      /** @type {number} */ asOfMs,
    ) => (message.type === 'get' ? get(session, message, asOfMs) : history(session, message)),
    session => deps.outbox.close(session, 'internalError'),
  )

  return { handle, resumeGets }
}

/** @param {never} message that is read although it has no handler: fails the type check */
function unknownMessage(message) {
  return new Error(`no handler for ${excerpt(/** @type {{ type: unknown }} */ (message).type)}`)
}
