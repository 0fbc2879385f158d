// Everything that goes to a session goes through here, a close included. Messages queued during one turn of the event
// loop leave in one write. While a session's socket does not drain, only control messages are queued: its values stay
// due. No send ends a session: one that takes no more is cut, and ends when the flusher comes to it.
import { type ControlMessage, type closeCodes, type ErrorMessage, encode, type RequestId } from '@keycast/protocol'
import type { Containment, World } from '@keycast/service'
import type { Counts } from '../counts.ts'
import { noteRefusal } from '../sessions/rate-limit.ts'
import type { Session } from '../sessions/session.ts'
import { PARKED, type Subscription } from '../topics/topics.ts'
import type { Value } from '../topics/values/value.ts'
import { createFlusher } from './flusher.ts'
import { queuedBytesOf, type SlowClients } from './slow-clients.ts'

export type CloseCode = keyof typeof closeCodes

export type Outbox = ReturnType<typeof createOutbox>

/** While sessions are looked at for what their rights have lost. */
interface Recheck {
  /** Before the session is written to. Returns false where that goes on. */
  look: (session: Session) => boolean
  isDue: (session: Session) => boolean
}

/** Parts that are built after the outbox, and are called by it. */
interface OutboxEvents {
  /** Called when the session must be closed now, without what is queued for it. */
  onEnd: (session: Session, code: CloseCode, isUrgent?: boolean) => void
  /** The session takes values: those its client asked for go before those it is due. */
  onWritable: (session: Session) => void
}

/**
 * About this many bytes are written to a session before others get their turn, and before it is checked whether its
 * client takes them. One value may pass it by its size.
 */
const BATCH_BYTES = 256 * 1024

interface Deps {
  slowClients: SlowClients
  /** Queued for one session that does not drain. */
  unsentBytesMax: number
  containment: Pick<Containment, 'guard'>
  counts: Counts
  now: () => number
  turn: World['turn']
}

export function createOutbox({ slowClients, unsentBytesMax, containment, counts, now, turn }: Deps) {
  let handlers: OutboxEvents
  let recheck: Recheck | undefined
  // The sessions behind one that fails are still to be written to.
  const flushOne = containment.guard('session', flush, session => handlers.onEnd(session, 'internalError'))
  const flusher = createFlusher({ flush: flushOne, now, nextTurn: turn })

  /** Queues a message for one session. @param of what an error is about */
  function send(session: Session, message: ControlMessage, of?: 'publish') {
    if (isOver(session)) return
    const text = encode(message)
    if (message.type === 'error') sendError(session, message, text, of)
    else sendText(session, message.type, text)
  }

  /** Queues an error. @param text of it, encoded once for all sessions that are told */
  function sendError(session: Session, message: ErrorMessage, text: string, of?: 'publish') {
    if (isOver(session)) return
    counts.errors[message.code]++
    noteRefusal(session, message, now(), of)
    sendText(session, 'error', text)
  }

  /** Queues a message that is encoded already. */
  function sendText(session: Session, type: ControlMessage['type'], text: string) {
    if (isOver(session)) return
    counts.sent[type]++
    session.pieces.push(text)
    queued(session, Buffer.byteLength(text))
  }

  /**
   * Queues a value as the answer to one request.
   *
   * @param id of the request
   */
  function sendValue(session: Session, value: Value, id: RequestId | undefined) {
    if (isOver(session)) return
    counts.sent.value++
    queued(session, session.encoding.addAnswer(value, id, session.pieces))
  }

  /** Queues a whole frame of the session's transport. */
  function sendFrame(session: Session, frame: Buffer) {
    if (isOver(session)) return
    session.pieces.push(frame)
    queued(session, frame.length)
  }

  function queued(session: Session, bytes: number) {
    session.pieceBytes += bytes
    if (session.stalledAtMs !== undefined) {
      if (queuedBytesOf(session) > unsentBytesMax) cut(session, 'slow')
      return
    }
    if (session.pieceBytes >= BATCH_BYTES) write(session)
    flusher.mark(session)
  }

  /**
   * Makes something due to a subscription. Its kind writes it when the session takes it, as it is by then.
   *
   * @param bits of the kind
   */
  function owe(subscription: Subscription, bits: number) {
    if (subscription.due === 0) subscription.session.due.push(subscription)
    subscription.due |= bits
    markDue(subscription.session)
  }

  /** Takes back everything that a subscription was due. */
  function forget(subscription: Subscription) {
    const { session, due } = subscription
    subscription.due = 0
    if (due <= 0) return
    session.dueEnded++
    // Most of them leave the list with the next flush. A session that is not flushed would pile them up.
    if (session.dueEnded * 2 <= session.due.length) return
    // One that was owed something again since stands there twice.
    session.due = [...new Set(session.due)].filter(each => each.due > 0)
    session.dueEnded = 0
  }

  /** These subscriptions wait no more: their value is there, or will not come. */
  function resume(parked: Subscription[]) {
    for (const subscription of parked) {
      // Another one ended meanwhile.
      if (subscription.due >= 0) continue
      subscription.due &= ~PARKED
      subscription.session.due.push(subscription)
      markDue(subscription.session)
    }
  }

  function markDue(session: Session) {
    if (!session.dirty && session.stalledAtMs === undefined) flusher.mark(session)
  }

  /** Whether values can be queued for the session now. */
  function isWritable(session: Session) {
    return session.stalledAtMs === undefined
  }

  /** Whether a change can be queued for the session now: else what it is due is written later, if it may still have it. */
  const takesChanges = (session: Session) => isWritable(session) && !recheck?.isDue(session)

  /** Closes the session once what is queued for it was written; at once where it does not take it. */
  function close(session: Session, code: CloseCode) {
    if (session.ended || session.closing) return
    if (session.stalledAtMs !== undefined) return cut(session, code)
    session.closing = code
    flusher.mark(session)
  }

  /**
   * The session's client does not take what is queued: all of it is dropped now, and the session ends in a turn of its own.
   * If it ended here, the caller would go on with it, and nothing unsubscribes what is subscribed after the end.
   *
   * @param session that is stalled
   */
  function cut(session: Session, code: CloseCode) {
    session.closing = code
    discard(session)
    flusher.mark(session)
  }

  /**
   * The session's turn has come: what it is due is written, up to a batch of it. It ends only here, where no caller is in
   * the middle of something.
   */
  function flush(session: Session) {
    if (session.ended) return
    write(session)
    const { closing, due, stalledAtMs, transport } = session
    if (due.length > 0 && stalledAtMs === undefined) flusher.mark(session)
    else if (closing && (stalledAtMs !== undefined || transport.isOpen())) handlers.onEnd(session, closing)
  }

  function write(session: Session) {
    if (session.stalledAtMs !== undefined) return
    // A close frame was sent, and nothing may follow it (RFC 6455 section 5.5.1).
    if (!session.transport.isOpen()) return discard(session)
    if (recheck && !recheck.look(session)) return

    // Answers to gets go before due values: a client that reads slower than its keys change is always due values. The
    // answers may fill the socket.
    if (session.deferredGets.length > 0) handlers.onWritable(session)
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

  /** @returns bytes added to its pieces */
  function addDue(session: Session): number {
    const { due, pieces } = session
    if (due.length === 0) return 0
    // Adds at least one value: a client that never runs out of gets would otherwise see no change of the keys it
    // watches.
    const bytesMax = Math.max(1, BATCH_BYTES - session.pieceBytes)
    const nowMs = now()
    let bytes = 0
    let done = 0
    while (done < due.length && bytes < bytesMax) {
      const subscription = due[done++]
      // Nothing, or it is parked: it stood there twice.
      if (subscription.due <= 0) {
        session.dueEnded--
        continue
      }
      bytes += subscription.topic.kind.write(subscription, pieces, bytesMax - bytes, nowMs)
      // Behind the others: a topic that never runs out of messages must not hold them up.
      if (subscription.due > 0) due.push(subscription)
    }
    if (done === due.length) due.length = 0
    else session.due = due.slice(done)
    return bytes
  }

  /** The session took all that was written. */
  function drained(session: Session) {
    // A cut session lost what was queued for it: nothing may follow that hole.
    if (session.stalledAtMs === undefined || isCut(session)) return
    // An event stream goes on with what it was written.
    session.transport.write([])
    if (session.transport.isStalled()) return
    counts.stalls.observe(now() - session.stalledAtMs)
    session.stalledAtMs = undefined
    // The last ping may still be unread in its socket, but the client was there a moment ago.
    session.heard = true
    slowClients.finish(session)
    flusher.mark(session)
  }

  /** Drops all that is queued for a session that has ended, or is about to. */
  function discard(session: Session) {
    slowClients.finish(session)
    session.pieces = []
    session.pieceBytes = 0
    session.due = []
    session.dueEnded = 0
    session.deferredGets = []
  }

  return {
    send,
    sendError,
    sendText,
    sendValue,
    sendFrame,
    owe,
    forget,
    resume,
    isWritable,
    takesChanges,
    close,
    drained,
    discard,
    fence: flusher.fence,

    /** Ends the sessions that do not take what they are written. */
    sweep: () => slowClients.sweep(handlers.onEnd),

    start(given: OutboxEvents) {
      handlers = given
    },

    /** @param first that is done before a session is written to; `undefined`: all were looked at */
    recheckFirst(first: Recheck | undefined) {
      recheck = first
    },
  }
}

/**
 * Whether what was queued for the session is dropped, and it ends with the next flush: nothing else closes one that is stalled.
 */
function isCut({ closing, stalledAtMs }: Session) {
  return closing !== undefined && stalledAtMs !== undefined
}

/** Whether nothing more is queued for the session. */
function isOver(session: Session) {
  return session.ended || isCut(session)
}
