// Turns a connection into a session: gives it a record, an encoding and a welcome.
import { createSession } from './session.js'

/**
 * @typedef {import('@keycast/protocol').ControlMessage} ControlMessage
 * @typedef {import('../transport/transport.js').Transport} Transport
 */

/**
 * @param {object} deps
 * @param {Pick<import('./sessions.js').Sessions, 'add' | 'end' | 'closed'>} deps.sessions
 * @param {Pick<import('../encodings/index.js').Encodings, 'forTransport'>} deps.encodings
 * @param {Pick<import('./receive.js').Receive, 'message' | 'ping' | 'pong'>} deps.receive
 * @param {Pick<import('./unfinished.js').Unfinished, 'report'>} deps.unfinished
 * @param {Pick<import('../delivery/outbox.js').Outbox, 'send' | 'drained'>} deps.outbox
 * @param {Pick<import('./credentials.js').Credentials, 'begin'>} deps.credentials
 * @param {import('../access/rights.js').Rights} deps.anonymous
 * @param {Pick<import('./rate-limit.js').RateLimit, 'allowances'>} deps.rateLimit
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
  welcome,
}) {
  /** @type {import('../transport/transport.js').TransportEvents} */
  const events = {
    onMessage: receive.message,
    onPing: receive.ping,
    onPong: receive.pong,
    onUnfinished(session, bytes) {
      const largest = unfinished.report(session, bytes)
      if (largest) sessions.end(largest, 'unfinished')
    },
    onDrain: outbox.drained,
    onClose: sessions.closed,
  }

  /**
   * Makes a session of a connection.
   *
   * @param {Transport} transport open, and nothing read from it yet
   * @param {{ peer: import('../access/identify.js').Peer, verified?: import('../access/tokens/tokens.js').Verified }} from
   */
  return function open(transport, { peer, verified }) {
    const start = { ...rateLimit.allowances(), peer, rights: anonymous }
    const session = createSession(transport, encodings.forTransport(transport), start)
    sessions.add(session)
    const holder = credentials.begin(session, verified)
    transport.serve(session, events)
    outbox.send(session, { type: 'welcome', session: session.id, ...welcome, ...holder })
  }
}
