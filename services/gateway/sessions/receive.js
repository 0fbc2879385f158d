// Takes what a client sends: charges it, reads it, passes it to its handler, and answers what cannot be handled.
import { errorCodes, errorMessage, ProtocolError, readClientMessage } from '@keycast/protocol'
import { costOf, OFFENCE_TOKENS } from './rate-limit.js'

/**
 * @typedef {import('./session.js').Session} Session
 * @typedef {ReturnType<typeof createReceive>} Receive
 */

/** A refused message up to this size is still read for its id, so that the client knows which of its requests it was. */
const REFUSED_BYTES_READ_MAX = 1_024

/** What a session may send before it got `authed`, where it may do nothing without: two of the longest tokens. */
const EARLY_BYTES_MAX = 16 * 1_024

/**
 * @param {object} deps
 * @param {(session: Session, message: import('@keycast/protocol').ClientMessage) => void} deps.handle
 * @param {Pick<import('../delivery/outbox.js').Outbox, 'send' | 'sendFrame' | 'close'>} deps.outbox
 * @param {Pick<import('./rate-limit.js').RateLimit, 'charge'>} deps.rateLimit
 */
export function createReceive({ handle, outbox, rateLimit }) {
  /**
   * @param {Session} session
   * @param {Buffer} data
   * @param {boolean} isBinary
   */
  function message(session, data, isBinary) {
    // What follows a message that closed the session was sent before the client could know.
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
    // All else waits for `authed`. Which keys or namespaces exist, it is not told.
    if (session.mustAuth && request.type !== 'auth' && request.type !== 'ping') {
      return answerOffence(session, new ProtocolError('unauthenticated', errorCodes.unauthenticated, request.id))
    }
    handle(session, request)
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

  /** @param {Session} session @param {Buffer} data @param {number} retryAfterMs */
  function refuse(session, data, retryAfterMs) {
    if (session.ended) return
    const id = data.length <= REFUSED_BYTES_READ_MAX ? idOf(data) : undefined
    outbox.send(session, errorMessage('rate_limited', { id, retryAfterMs }))
  }

  /** @param {Session} session @param {ProtocolError} error */
  function answerOffence(session, { code, message, id }) {
    outbox.send(session, errorMessage(code, { id, message }))
    rateLimit.charge(session, OFFENCE_TOKENS)
  }

  return { message, ping }
}

/** @param {Buffer} data a message that is not handled */
function idOf(data) {
  try {
    return readClientMessage(data.toString()).id
  } catch (error) {
    if (error instanceof ProtocolError) return error.id
    throw error
  }
}
