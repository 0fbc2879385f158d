// Turns a connection into a session: gives it a record, an encoding and a welcome.
import { createSession } from './session.ts'

/**
 * @typedef {import('./session.ts').Session} Session
 * @typedef {import('../access/tokens/tokens.ts').Verified} Verified
 * @typedef {import('@keycast/protocol').ControlMessage} ControlMessage
 * @typedef {import('../transport/transport.ts').Transport} Transport
 */

/**
 * @param {object} deps
 * @param {Pick<import('./sessions.ts').Sessions, 'add' | 'end' | 'closed'>} deps.sessions
 * @param {Pick<import('../encodings/index.ts').Encodings, 'forTransport'>} deps.encodings
 * @param {Pick<import('./receive.ts').Receive, 'message' | 'ping' | 'pong'>} deps.receive
 * @param {Pick<import('./unfinished.ts').Unfinished, 'report'>} deps.unfinished
 * @param {Pick<import('../delivery/outbox.ts').Outbox, 'send' | 'drained'>} deps.outbox
 * @param {Pick<import('./credentials.ts').Credentials, 'begin'>} deps.credentials
 * @param {import('../access/rights.ts').Rights} deps.anonymous
 * @param {Pick<import('./rate-limit.ts').RateLimit, 'allowances'>} deps.rateLimit
 * @param {Pick<import('@keycast/service').Containment, 'guard'>} deps.containment
 * @param {Omit<Extract<ControlMessage, { type: 'welcome' }>, 'type' | 'session' | 'user' | 'expiresInMs'>} deps.welcome
 */
export function createOpen({
  sessions,
  encodings,
  receive,
  unfinished,
  outbox,
  credentials,
  anonymous,
  rateLimit,
  containment,
  welcome,
}) {
  /**
   * An error that no code foresaw ends the session that it came with.
   *
   * @param {(session: Session, ...of: any[]) => unknown} handle
   */
  const guarded = handle =>
    containment.guard('session', handle, (session, ..._) => sessions.end(session, 'internalError'))

  /** @type {import('../transport/transport.ts').TransportEvents} */
  const events = {
    onMessage: guarded(receive.message),
    onPing: guarded(receive.ping),
    onPong: guarded(receive.pong),
    onUnfinished: guarded((/** @type {Session} */ session, /** @type {number} */ bytes) => {
      const largest = unfinished.report(session, bytes)
      if (largest) sessions.end(largest, 'unfinished')
    }),
    onDrain: guarded(outbox.drained),
    onClose: guarded(sessions.closed),
  }

  const begin = guarded((/** @type {Session} */ session, /** @type {Verified | undefined} */ verified) => {
    const holder = credentials.begin(session, verified)
    outbox.send(session, { type: 'welcome', session: session.id, ...welcome, ...holder })
  })

  /**
   * Makes a session of a connection.
   *
   * @param {Transport} transport open, and nothing read from it yet
   * @param {{ peer: import('../access/identify.ts').Peer, verified?: Verified }} from
   */
  return function open(transport, { peer, verified }) {
    const start = { ...rateLimit.allowances(), peer, rights: anonymous }
    const session = createSession(transport, encodings.forTransport(transport), start)
    sessions.add(session)
    // From here on the end of the connection is the end of the session, also where one of the next lines fails.
    transport.serve(session, events)
    begin(session, verified)
  }
}
