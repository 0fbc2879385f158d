// Everything that goes to a session goes through here, a close included. Messages queued during one turn of the event
// loop leave in one write. While a session's socket does not drain, only control messages are queued: its values stay
// due. No send ends a session: one that takes no more is cut, and ends when the flusher comes to it.
import { encode } from '@keycast/protocol'
import { noContainment } from '@keycast/service'
import { wholeFrame } from '../presence/member-list.ts'
import { addDueFrames, MEMBERS, MESSAGES, mustWait, WAITS } from './due.ts'
import { createFlusher } from './flusher.ts'
import { queuedBytesOf } from './slow-clients.ts'

/**
 * @typedef {import('@keycast/protocol').RequestId} RequestId
 * @typedef {import('@keycast/protocol').ControlMessage} ControlMessage
 * @typedef {import('../sessions/session.ts').Session} Session
 * @typedef {import('../keys/subscriptions.ts').Subscription} Subscription
 * @typedef {import('../presence/member-list.ts').MembersWatch} MembersWatch
 * @typedef {import('../rooms/room.ts').RoomSubscription} RoomSubscription
 * @typedef {keyof typeof import('@keycast/protocol').closeCodes} CloseCode
 * @typedef {ReturnType<typeof createOutbox>} Outbox
 *
 * The outbox's reports to parts that are built after it.
 * @typedef {object} OutboxEvents
 * @property {(session: Session, code: CloseCode) => void} onEnd called when the session must be closed now, without
 *   what is queued for it
 * @property {(session: Session) => void} onWritable the session takes values: those its client asked for go before
 *   those it is due
 */

/**
 * About this many bytes are written to a session before others get their turn, and before it is checked whether its
 * client takes them. One value may pass it by its size.
 */
const BATCH_BYTES = 256 * 1024

/**
 * @param {object} deps
 * @param {OutboxEvents} deps.events
 * @param {Pick<import('./slow-clients.ts').SlowClients, 'begin' | 'finish'>} deps.slowClients
 * @param {import('../rooms/due-messages.ts').DueMessages} deps.addDueMessages
 * @param {number} deps.unsentBytesMax queued for one session that does not drain
 * @param {Pick<import('@keycast/service').Containment, 'guard'>} [deps.containment]
 * @param {import('../counts.ts').Counts} deps.counts
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createOutbox({
  events,
  slowClients,
  addDueMessages,
  unsentBytesMax,
  containment = noContainment,
  counts,
  now,
}) {
  // The sessions behind one that fails are still to be written to.
  const flushOne = containment.guard('session', flush, session => events.onEnd(session, 'internalError'))
  const flusher = createFlusher({ flush: flushOne, now })

  /**
   * Queues a message for one session.
   *
   * @param {Session} session
   * @param {ControlMessage} message
   */
  function send(session, message) {
    if (message.type === 'error' && !isOver(session)) counts.errors[message.code]++
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
    if (isOver(session)) return
    counts.sent[type]++
    session.pieces.push(text)
    queued(session, Buffer.byteLength(text))
  }

  /**
   * Queues a value as the answer to one request.
   *
   * @param {Session} session
   * @param {import('../keys/value.ts').Value} value
   * @param {RequestId | undefined} id of the request
   */
  function sendValue(session, value, id) {
    if (isOver(session)) return
    counts.sent.value++
    queued(session, session.encoding.addAnswer(value, id, session.pieces))
  }

  /**
   * Queues a whole frame of the session's transport.
   *
   * @param {Session} session
   * @param {Buffer} frame
   */
  function sendFrame(session, frame) {
    if (isOver(session)) return
    session.pieces.push(frame)
    queued(session, frame.length)
  }

  /** @param {Session} session @param {number} bytes */
  function queued(session, bytes) {
    session.pieceBytes += bytes
    if (session.stalledAtMs !== undefined) {
      if (queuedBytesOf(session) > unsentBytesMax) cut(session, 'slow')
      return
    }
    if (session.pieceBytes >= BATCH_BYTES) write(session)
    flusher.mark(session)
  }

  /**
   * Makes a state of its key due to a subscription. The session is sent the latest state at the time of writing.
   *
   * @param {Subscription} subscription
   * @param {number} bits of due.ts
   */
  function owe(subscription, bits) {
    if (subscription.due === 0) subscription.session.due.push(subscription)
    else if (subscription.due & bits) counts.conflated++
    subscription.due |= bits
    markDue(subscription.session)
  }

  /**
   * Makes the messages after its cursor due to a room's subscription.
   *
   * @param {RoomSubscription} subscription
   */
  function oweMessages(subscription) {
    if (subscription.due === 0) subscription.session.due.push(subscription)
    subscription.due = MESSAGES
    markDue(subscription.session)
  }

  /**
   * Makes all members of a room due to a session that is told of them.
   *
   * @param {MembersWatch} watch
   */
  function oweMembers(watch) {
    if (watch.due === 0) watch.session.due.push(watch)
    watch.due = MEMBERS
    markDue(watch.session)
  }

  /**
   * Takes back everything that an ended subscription was due.
   *
   * @param {Subscription | RoomSubscription | MembersWatch} subscription
   */
  function forget(subscription) {
    const { session, due } = subscription
    if (due === 0) return
    subscription.due = 0
    // A subscription with this bit stands in its encoding's list, not in the session's.
    if (due & WAITS) return
    session.dueEnded++
    // Most of them leave the list with the next flush. A session that is not flushed would pile them up.
    if (session.dueEnded * 2 <= session.due.length) return
    session.due = session.due.filter(each => each.due !== 0)
    session.dueEnded = 0
  }

  /**
   * The encoding has made the form that these subscriptions waited for, or has given up on it.
   *
   * @param {Subscription[]} waiting
   */
  function resume(waiting) {
    for (const subscription of waiting) {
      // A subscription without the bit ended meanwhile.
      if (!(subscription.due & WAITS)) continue
      subscription.due &= ~WAITS
      subscription.session.due.push(subscription)
      markDue(subscription.session)
    }
  }

  /** @param {Session} session */
  function markDue(session) {
    if (!session.dirty && session.stalledAtMs === undefined) flusher.mark(session)
  }

  /** Whether values can be queued for the session now. @param {Session} session */
  function isWritable(session) {
    return session.stalledAtMs === undefined
  }

  /**
   * Closes the session once what is queued for it was written; at once where it does not take it.
   *
   * @param {Session} session
   * @param {CloseCode} code
   */
  function close(session, code) {
    if (session.ended || session.closing) return
    if (session.stalledAtMs !== undefined) return cut(session, code)
    session.closing = code
    flusher.mark(session)
  }

  /**
   * The session's client does not take what is queued: all of it is dropped now, and the session ends in a turn of its own.
   * If it ended here, the caller would go on with it, and nothing unsubscribes what is subscribed after the end.
   *
   * @param {Session} session that is stalled
   * @param {CloseCode} code
   */
  function cut(session, code) {
    session.closing = code
    discard(session)
    flusher.mark(session)
  }

  /**
   * The session's turn has come: what it is due is written, up to a batch of it. It ends only here, where no caller is in
   * the middle of something.
   *
   * @param {Session} session
   */
  function flush(session) {
    if (session.ended) return
    write(session)
    const { closing, due, stalledAtMs, transport } = session
    if (due.length > 0 && stalledAtMs === undefined) flusher.mark(session)
    else if (closing && (stalledAtMs !== undefined || transport.isOpen())) events.onEnd(session, closing)
  }

  /** @param {Session} session */
  function write(session) {
    if (session.stalledAtMs !== undefined) return
    // A close frame was sent, and nothing may follow it (RFC 6455 section 5.5.1).
    if (!session.transport.isOpen()) return discard(session)

    // Answers to gets go before due values: a client that reads slower than its keys change is always due values. The
    // answers may fill the socket.
    if (session.deferredGets.length > 0) events.onWritable(session)
    if (session.stalledAtMs !== undefined) return

    const { pieces } = session
    const bytes = session.pieceBytes + addDue(session)
    if (pieces.length === 0) return
    session.transport.write(pieces)
    counts.sentBytes += bytes
    const isStalled = session.transport.isStalled()
    if (isStalled) slowClients.begin(session, pieces)
    pieces.length = 0
    session.pieceBytes = 0
    if (!isStalled) return
    session.stalledAtMs = now()
    if (session.closing) cut(session, session.closing)
  }

  /** @param {Session} session @returns {number} bytes added to its pieces */
  function addDue(session) {
    const { due, pieces } = session
    if (due.length === 0) return 0
    // Adds at least one value: a client that never runs out of gets would otherwise see no change of the keys it
    // watches.
    const bytesMax = Math.max(1, BATCH_BYTES - session.pieceBytes)
    const nowMs = now()
    let bytes = 0
    let done = 0
    while (done < due.length && bytes < bytesMax) {
      const each = due[done++]
      if (each.due === 0) {
        session.dueEnded--
        continue
      }
      if (each.due === MESSAGES) {
        const room = /** @type {RoomSubscription} */ (each)
        bytes += addDueMessages(pieces, room, bytesMax - bytes, nowMs)
        // Behind the others: a room that never runs out of messages must not hold them up.
        if (room.due !== 0) due.push(room)
        continue
      }
      if (each.due === MEMBERS) {
        const watch = /** @type {MembersWatch} */ (each)
        watch.due = 0
        counts.sent.members++
        const frame = wholeFrame(watch.list)
        pieces.push(frame)
        bytes += frame.length
        continue
      }
      const subscription = /** @type {Subscription} */ (each)
      if (session.encoding.mustWait && mustWait(subscription)) continue
      bytes += addDueFrames(pieces, subscription, counts, nowMs)
      subscription.due = 0
    }
    if (done === due.length) due.length = 0
    else session.due = due.slice(done)
    return bytes
  }

  /**
   * The session took all that was written.
   *
   * @param {Session} session
   */
  function drained(session) {
    // A cut session lost what was queued for it: nothing may follow that hole.
    if (session.stalledAtMs === undefined || isCut(session)) return
    counts.stalls.observe(now() - session.stalledAtMs)
    session.stalledAtMs = undefined
    // The last ping may still be unread in its socket, but the client was there a moment ago.
    session.heard = true
    slowClients.finish(session)
    flusher.mark(session)
  }

  /**
   * Drops all that is queued for a session that has ended, or is about to.
   *
   * @param {Session} session
   */
  function discard(session) {
    slowClients.finish(session)
    session.pieces = []
    session.pieceBytes = 0
    session.due = []
    session.dueEnded = 0
    session.deferredGets = []
  }

  return {
    send,
    sendText,
    sendValue,
    sendFrame,
    owe,
    oweMessages,
    oweMembers,
    forget,
    resume,
    isWritable,
    close,
    drained,
    discard,
    fence: flusher.fence,
  }
}

/**
 * Whether what was queued for the session is dropped, and it ends with the next flush: nothing else closes one that is stalled.
 *
 * @param {Session} session
 */
function isCut({ closing, stalledAtMs }) {
  return closing !== undefined && stalledAtMs !== undefined
}

/** Whether nothing more is queued for the session. @param {Session} session */
function isOver(session) {
  return session.ended || isCut(session)
}
