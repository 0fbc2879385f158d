// Takes a client's message: charges the session, reads it, passes it to its handler, and answers errors.
import { errorCodes, errorMessage, ProtocolError, readClientMessage, readRequestId } from '@keycast/protocol'
import { costOf, OFFENCE_REQUESTS } from './rate-limit.ts'

/**
 * @typedef {import('./session.ts').Session} Session
 * @typedef {ReturnType<typeof createReceive>} Receive
 */

/** A session that may do nothing before `authed` may send so many bytes until then: two of the longest tokens. */
const EARLY_BYTES_MAX = 16 * 1_024

/**
 * @param {object} deps
 * @param {(session: Session, message: import('@keycast/protocol').ClientMessage) => unknown} deps.handle a promise that it
 *   returns is of the rest of its work
 * @param {Pick<import('../delivery/outbox.ts').Outbox, 'send' | 'sendFrame' | 'close'>} deps.outbox
 * @param {Pick<import('./rate-limit.ts').RateLimit, 'charge'>} deps.rateLimit
 */
export function createReceive({ handle, outbox, rateLimit }) {
  /**
   * @param {Session} session
   * @param {Buffer} data
   * @param {boolean} isBinary
   * @returns {unknown} a promise where some of the work is still to be done
   */
  function message(session, data, isBinary) {
    // A message after the one that closed the session was sent before the client could know.
    if (session.ended || session.closing) return
    session.heard = true
    if (isBinary) return outbox.close(session, 'unsupportedData')
    const waitMs = rateLimit.charge(session, costOf(data.length))
    if (waitMs > 0) return refuse(session, data, waitMs)

    if (session.mustAuth) {
      session.earlyBytes += data.length
      if (session.earlyBytes > EARLY_BYTES_MAX) return outbox.close(session, 'unauthenticated')
    }

    let request
    try {
      request = readClientMessage(data.toString())
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      return answerOffence(session, error)
    }
    // All else waits for `authed`: a stranger is not told which keys or namespaces exist.
    if (session.mustAuth && request.type !== 'auth' && request.type !== 'ping') {
      return answerOffence(session, new ProtocolError('unauthenticated', errorCodes.unauthenticated, request.id))
    }
    return handle(session, request)
  }

  /**
   * A WebSocket ping. Charged like a request, for it is answered like one.
   *
   * @param {Session} session
   * @param {Buffer} payload
   */
  function ping(session, payload) {
    if (session.ended || session.closing) return
    session.heard = true
    // Over the limit it stays unanswered: a client may not count on an answer to each (RFC 6455 section 5.5.3).
    if (rateLimit.charge(session, 1) === 0) outbox.sendFrame(session, session.transport.pongFrame(payload))
  }

  /**
   * A pong: the answer to a ping, or one that nobody asked for (RFC 6455 section 5.5.3). Charged like a ping, for a
   * flood of them costs as much.
   *
   * @param {Session} session
   */
  function pong(session) {
    if (session.ended || session.closing) return
    session.heard = true
    rateLimit.charge(session, 1)
  }

  /** @param {Session} session @param {Buffer} data @param {number} retryAfterMs */
  function refuse(session, data, retryAfterMs) {
    if (session.ended) return
    // Parsed a second time only here, whatever its size: its bytes are charged, and a session in debt can afford few.
    outbox.send(session, errorMessage('rate_limited', { id: readRequestId(data.toString()), retryAfterMs }))
  }

  /** @param {Session} session @param {ProtocolError} error */
  function answerOffence(session, { code, message, id }) {
    outbox.send(session, errorMessage(code, { id, message }))
    rateLimit.charge(session, OFFENCE_REQUESTS)
  }

  return { message, ping, pong }
}
