// Everything a client can ask, each request in a file of its own.
import { excerpt } from '@keycast/protocol'
import { createAuth } from './auth.ts'
import { createGet } from './get.ts'
import { createHistory } from './history.ts'
import { createJoin } from './join.ts'
import { createLeave } from './leave.ts'
import { createPing } from './ping.ts'
import { createPublish } from './publish.ts'
import { createSubscribe } from './subscribe.ts'
import { createUnsubscribe } from './unsubscribe.ts'

/**
 * @typedef {import('@keycast/protocol').ClientMessage} ClientMessage
 * @typedef {import('../sessions/session.ts').Session} Session
 *
 * @typedef {object} HandlerDeps
 * @property {Pick<import('../gate/gate.ts').Gate, 'enter' | 'recheck' | 'check'>} gate
 * @property {Pick<import('../access/identify.ts').Identify, 'verify'>} identify
 * @property {Pick<import('../access/revocations/revocations.ts').Revocations, 'isRevoked'>} revocations
 * @property {Pick<import('../sessions/accounts.ts').Accounts, 'of' | 'hasRoom'>} accounts
 * @property {Pick<import('../sessions/credentials.ts').Credentials, 'renew'>} credentials
 * @property {Pick<import('../keys/values.ts').Values, 'fresh'>} values
 * @property {Pick<import('../keys/single-flight.ts').SingleFlight, 'want'>} singleFlight
 * @property {import('../keys/admissions.ts').Admissions} admissions
 * @property {import('../keys/subscriptions.ts').Subscriptions} subscriptions
 * @property {Pick<import('../keys/endings.ts').Endings, 'remove'>} endings
 * @property {Pick<import('../rooms/rooms.ts').Rooms, 'isRoom' | 'announce' | 'finish' | 'stats'>} rooms
 * @property {Pick<import('../rooms/publishes.ts').Publishes, 'fromSession'>} publishes
 * @property {Pick<import('../rooms/histories.ts').Histories, 'read'>} histories
 * @property {Pick<import('../presence/joins.ts').Joins, 'join' | 'leave'>} joins
 * @property {import('../delivery/outbox.ts').Outbox} outbox
 * @property {Pick<import('../sessions/rate-limit.ts').RateLimit, 'charge' | 'keysWaitMs' | 'chargeKeys'>} rateLimit
 * @property {number} getsWaitingMax of one session
 * @property {Pick<import('@keycast/service').Containment, 'guard'>} containment
 * @property {import('../counts.ts').Counts} counts
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
      /** @type {import('../sessions/session.ts').DeferredGet['get']} */ message,
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
