// Everything that goes to a session goes through here, a close included. What is queued during a turn of the event loop
// leaves in one write. A session whose socket does not drain holds no values, only which keys it lacks.
import { encode } from '@keycast/protocol'
import { bytesStart } from '../encodings/bytes.js'
import { deflatedFrame, deflatedStart } from '../encodings/compressed.js'
import { answerStart } from '../encodings/json.js'
import { jsonOf, startOf } from '../keys/value.js'
import { countCompressed } from '../metrics.js'
import { AWAITS, makeUp } from './due.js'

/**
 * @typedef {import('@keycast/protocol').Get} Get
 * @typedef {import('@keycast/protocol').RequestId} RequestId
 * @typedef {import('@keycast/protocol').ControlMessage} ControlMessage
 * @typedef {import('../transport/transport.js').Piece} Piece
 * @typedef {import('../sessions/session.js').Session} Session
 * @typedef {import('../keys/subscriptions.js').Subscription} Subscription
 * @typedef {keyof typeof import('@keycast/protocol').closeCodes} CloseCode
 * @typedef {ReturnType<typeof createOutbox>} Outbox
 */

/**
 * About this many bytes are written to a session before others get their turn, and before it is looked at whether it
 * takes them. One value may pass it by its size.
 */
const BATCH_BYTES = 256 * 1024

/**
 * @param {object} deps
 * @param {{ mark: (session: Session) => void }} deps.flusher
 * @param {(session: Session, code: CloseCode) => void} deps.end closes it now: what is queued for it is dropped
 * @param {Pick<import('./slow-clients.js').Stalls, 'begin' | 'finish'>} deps.stalls
 * @param {(session: Session, get: Get, asOfMs: number) => void} deps.answer a get that waited for the socket to drain
 * @param {Pick<import('../encodings/compression.js').Compression, 'of' | 'isAwaited'>} deps.compression
 * @param {{ unsentBytesMax: number, getsWaitingMax: number }} deps.limits
 * @param {import('../metrics.js').Counts} deps.counts
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createOutbox({ flusher, end, stalls, answer, compression, limits, counts, now }) {
  /**
   * Queues a message for one session.
   *
   * @param {Session} session
   * @param {ControlMessage} message
   */
  function send(session, message) {
    if (message.type === 'error' && !session.ended) counts.errors[message.code]++
    sendText(session, message.type, encode(message))
  }

  /**
   * Queues a message that is encoded already.
   *
   * @param {Session} session
   * @param {ControlMessage['type']} type
   * @param {string} text
   */
  function sendText(session, type, text) {
    if (session.ended) return
    counts.sent[type]++
    session.pieces.push(text)
    queued(session, text.length)
  }

  /**
   * Queues a value as the answer to one request: compressed where that is done already, for an answer does not wait.
   *
   * @param {Session} session
   * @param {import('../keys/value.js').Value} value
   * @param {RequestId | undefined} id of the request
   */
  function sendValue(session, value, id) {
    if (session.ended) return
    counts.sent.value++
    if (session.compressed) {
      compression.of(value, session.bytes)
      const deflated = deflatedFrame(value, session.bytes)
      if (deflated) {
        const { start, rest, savedBytes } = deflated
        countCompressed(counts, savedBytes)
        return sendFrame(session, id === undefined ? start : deflatedStart(value, session.bytes, rest, id), rest)
      }
    }
    if (session.bytes) return sendFrame(session, id === undefined ? startOf(value) : bytesStart(value, id), value.body)
    const encoded = jsonOf(value)
    if (id === undefined) sendFrame(session, encoded.frame)
    else sendFrame(session, answerStart(value, encoded, id), encoded.rest)
  }

  /**
   * Queues a frame, or the two parts of one, built by frames.js.
   *
   * @param {Session} session
   * @param {Buffer} frame
   * @param {Buffer} [rest]
   */
  function sendFrame(session, frame, rest) {
    if (session.ended) return
    session.pieces.push(frame)
    if (rest) session.pieces.push(rest)
    queued(session, frame.length + (rest?.length ?? 0))
  }

  /** @param {Session} session @param {number} bytes */
  function queued(session, bytes) {
    session.pieceBytes += bytes
    if (session.stalledAtMs !== undefined) {
      if (session.pieceBytes > limits.unsentBytesMax) end(session, 'slow')
    } else if (session.pieceBytes >= BATCH_BYTES) {
      flush(session)
    } else {
      flusher.mark(session)
    }
  }

  /**
   * The subscription's session is due something of its key: the latest, when it is next written to.
   *
   * @param {Subscription} subscription
   * @param {number} bit of lacks.js
   */
  function lack(subscription, bit) {
    const { session } = subscription
    if (subscription.lacks === 0) session.lacking.push(subscription)
    else if (subscription.lacks & bit) counts.conflated++
    subscription.lacks |= bit
    if (!session.dirty && session.stalledAtMs === undefined) flusher.mark(session)
  }

  /**
   * The subscription ended: nothing of its key is written any more.
   *
   * @param {Subscription} subscription
   */
  function forget(subscription) {
    const { session, lacks } = subscription
    if (lacks === 0) return
    subscription.lacks = 0
    if (lacks & AWAITS) return
    session.lackingEnded++
    // Most leave with the next flush; of a session that is not flushed they must not pile up.
    if (session.lackingEnded * 2 <= session.lacking.length) return
    session.lacking = session.lacking.filter(({ lacks }) => lacks !== 0)
    session.lackingEnded = 0
  }

  /**
   * What these subscriptions waited for is compressed, or will not be.
   *
   * @param {Subscription[]} waiting
   */
  function resume(waiting) {
    for (const subscription of waiting) {
      // Else it ended meanwhile.
      if (!(subscription.lacks & AWAITS)) continue
      subscription.lacks &= ~AWAITS
      const { session } = subscription
      session.lacking.push(subscription)
      if (!session.dirty && session.stalledAtMs === undefined) flusher.mark(session)
    }
  }

  /** Whether values can be queued for the session now. Where not: {@link hold}. @param {Session} session */
  function takes(session) {
    return session.stalledAtMs === undefined
  }

  /**
   * Whether one more of the session's gets may wait: for the fetcher, or for the client to read.
   *
   * @param {Session} session
   */
  function mayWait({ getsWaiting, heldGets }) {
    return getsWaiting + heldGets.length < limits.getsWaitingMax
  }

  /**
   * Keeps a get until the session takes values again.
   *
   * @param {Session} session
   * @param {Get} get
   * @param {number} asOfMs as of when its answer must be fresh
   * @returns {boolean} false where too many wait already
   */
  function hold(session, get, asOfMs) {
    if (session.ended) return true
    if (!mayWait(session)) return false
    session.heldGets.push({ get, asOfMs })
    return true
  }

  /**
   * Closes the session once what is queued for it was written; at once where it does not take it.
   *
   * @param {Session} session
   * @param {CloseCode} code
   */
  function close(session, code) {
    if (session.ended || session.closing) return
    if (session.stalledAtMs !== undefined) return end(session, code)
    session.closing = code
    flusher.mark(session)
  }

  /**
   * Writes what the session is due, up to a batch of it.
   *
   * @param {Session} session
   */
  function flush(session) {
    if (session.ended || session.stalledAtMs !== undefined) return
    // The client has begun to close, or the transport has: a close frame is out, and nothing may follow it (RFC 6455 section 5.5.1).
    if (!session.transport.isOpen()) return discard(session)

    // Before the values it lacks: of a client that reads slower than they change, there are always some. Its answers may
    // fill the socket.
    if (session.heldGets.length > 0) answerHeld(session)
    if (session.ended || session.stalledAtMs !== undefined) return

    const { pieces } = session
    const bytes = session.pieceBytes + addLacking(session)
    if (pieces.length > 0) {
      session.transport.write(pieces)
      counts.sentBytes += bytes
      const stalled = session.transport.isStalled()
      if (stalled) stalls.begin(session, pieces)
      pieces.length = 0
      session.pieceBytes = 0
      if (stalled) {
        session.stalledAtMs = now()
        if (session.closing) end(session, session.closing)
        return
      }
    }
    if (session.lacking.length > 0) flusher.mark(session)
    else if (session.closing) end(session, session.closing)
  }

  /** @param {Session} session @returns {number} bytes added to its pieces */
  function addLacking(session) {
    const { lacking, pieces } = session
    if (lacking.length === 0) return 0
    // One at least, or a client that never runs out of gets would see no change of what it watches.
    const bytesMax = Math.max(1, BATCH_BYTES - session.pieceBytes)
    const nowMs = now()
    let bytes = 0
    let done = 0
    while (done < lacking.length && bytes < bytesMax) {
      const subscription = lacking[done++]
      if (subscription.lacks === 0) {
        session.lackingEnded--
        continue
      }
      if (session.compressed && compression.isAwaited(subscription)) continue
      bytes += makeUp(pieces, subscription, counts, nowMs)
      subscription.lacks = 0
    }
    if (done === lacking.length) lacking.length = 0
    else session.lacking = lacking.slice(done)
    return bytes
  }

  /** @param {Session} session */
  function answerHeld(session) {
    const gets = session.heldGets
    session.heldGets = []
    // Some may have to wait again: for the fetcher, or because the first answers filled the socket.
    for (const { get, asOfMs } of gets) answer(session, get, asOfMs)
  }

  /**
   * The session took all that was written.
   *
   * @param {Session} session
   */
  function drained(session) {
    if (session.stalledAtMs === undefined) return
    counts.stalls.observe(now() - session.stalledAtMs)
    session.stalledAtMs = undefined
    // It may not have come to the last ping yet, but it is there.
    session.heard = true
    stalls.finish(session)
    flusher.mark(session)
  }

  /**
   * Lets go of all that is queued for a session that has ended.
   *
   * @param {Session} session
   */
  function discard(session) {
    stalls.finish(session)
    session.pieces = []
    session.pieceBytes = 0
    session.lacking = []
    session.lackingEnded = 0
    session.heldGets = []
  }

  return {
    send,
    sendText,
    sendValue,
    sendFrame,
    lack,
    forget,
    resume,
    takes,
    mayWait,
    hold,
    close,
    flush,
    drained,
    discard,
  }
}
