// Takes a client's message: charges the session, reads it, passes it to its handler, and answers errors.
import {
  type ClientMessage,
  type ControlMessage,
  errorCodes,
  errorMessage,
  ProtocolError,
  readClientMessage,
  readRequestId,
} from '@keycast/protocol'
import type { CloseCode } from '../delivery/outbox.ts'
import { costOf, OFFENCE_REQUESTS } from './rate-limit.ts'
import type { Session } from './session.ts'

/** A session that may do nothing before `authed` may send so many bytes until then: two of the longest tokens. */
const EARLY_BYTES_MAX = 16 * 1_024

/** A promise that it returns is of the rest of its work. */
type Handle = (session: Session, message: ClientMessage) => unknown

interface Deps {
  outbox: {
    send(session: Session, message: ControlMessage): void
    sendFrame(session: Session, frame: Buffer): void
    close(session: Session, code: CloseCode): void
  }
  rateLimit: { charge(session: Session, requests: number): number }
}

export function createReceive({ outbox, rateLimit }: Deps) {
  let handle: Handle

  /** @returns a promise where some of the work is still to be done */
  function message(session: Session, data: Buffer, isBinary: boolean): unknown {
    // A message after the one that closed the session was sent before the client could know.
    if (session.ended || session.closing) return
    session.heard = true
    if (isBinary) return outbox.close(session, 'unsupportedData')
    const waitMs = rateLimit.charge(session, costOf(data))
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

  /** A WebSocket ping. Charged like a request, for it is answered like one. */
  function ping(session: Session, payload: Buffer) {
    if (session.ended || session.closing) return
    session.heard = true
    // Over the limit it stays unanswered: a client may not count on an answer to each (RFC 6455 section 5.5.3).
    if (rateLimit.charge(session, 1) === 0) outbox.sendFrame(session, session.transport.pongFrame(payload))
  }

  /**
   * A pong: the answer to a ping, or one that nobody asked for (RFC 6455 section 5.5.3). Charged like a ping, for a
   * flood of them costs as much.
   */
  function pong(session: Session) {
    if (session.ended || session.closing) return
    session.heard = true
    rateLimit.charge(session, 1)
  }

  function refuse(session: Session, data: Buffer, retryAfterMs: number) {
    if (session.ended) return
    outbox.send(session, errorMessage({ code: 'rate_limited', retryAfterMs }, { id: readRequestId(data.toString()) }))
  }

  function answerOffence(session: Session, { code, message, id }: ProtocolError) {
    outbox.send(session, errorMessage({ code, message }, { id }))
    rateLimit.charge(session, OFFENCE_REQUESTS)
  }

  return {
    message,
    ping,
    pong,
    start(given: Handle) {
      handle = given
    },
  }
}
