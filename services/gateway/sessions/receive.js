// Takes what a client sends: charges it, reads it, hands it to its handler, and answers what cannot be handled.
import { errorCodes, ProtocolError, readClientMessage } from '@keycast/protocol'
import { costOf, OFFENCE_TOKENS } from './rate-limit.js'

/** @typedef {import('./session.js').Session} Session */

/** A refused message up to this size is still read for its id, so that the client knows which of its requests it was. */
const REFUSED_BYTES_READ_MAX = 1_024

/**
 * @param {object} deps
 * @param {(session: Session, message: import('@keycast/protocol').ClientMessage) => void} deps.handle
 * @param {Pick<import('../delivery/outbox.js').Outbox, 'send' | 'sendFrame' | 'close'>} deps.outbox
 * @param {(session: Session, code: import('../delivery/outbox.js').CloseCode) => void} deps.end
 * @param {Pick<ReturnType<typeof import('./rate-limit.js').createLimits>, 'take'>} deps.limits
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createReceive({ handle, outbox, end, limits, now }) {
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
    const waitMs = limits.take(session, costOf(data.length), now())
    if (waitMs > 0) return refuse(session, data, waitMs)

    let request
    try {
      request = readClientMessage(data.toString())
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      return complain(session, error)
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
    const waitMs = limits.take(session, 1, now())
    if (waitMs === Number.POSITIVE_INFINITY) return end(session, 'abusive')
    // Over the limit it stays unanswered: a client may not count on an answer to each (RFC 6455 section 5.5.3).
    if (waitMs === 0) outbox.sendFrame(session, session.transport.pongFrame(payload))
  }

  /** @param {Session} session @param {Buffer} data @param {number} waitMs */
  function refuse(session, data, waitMs) {
    if (waitMs === Number.POSITIVE_INFINITY) return end(session, 'abusive')
    const id = data.length <= REFUSED_BYTES_READ_MAX ? idOf(data) : undefined
    const error = /** @type {const} */ ({ type: 'error', code: 'rate_limited', message: errorCodes.rate_limited })
    outbox.send(session, { ...error, id, retryAfterMs: waitMs })
  }

  /** @param {Session} session @param {ProtocolError} error */
  function complain(session, { code, message, id }) {
    outbox.send(session, { type: 'error', id, code, message })
    charge(session, OFFENCE_TOKENS)
  }

  /**
   * Makes a session pay for what its message caused, after the fact.
   *
   * @param {Session} session
   * @param {number} tokens
   */
  function charge(session, tokens) {
    if (limits.take(session, tokens, now()) === Number.POSITIVE_INFINITY) end(session, 'abusive')
  }

  return { message, ping, charge }
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
