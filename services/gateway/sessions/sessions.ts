// The sessions there are: how they end, and the order of their pings.
import { closeCodes } from '@keycast/protocol'
import { noContainment } from '@keycast/service'
import { countOne } from '../counts.ts'

/**
 * @typedef {import('../delivery/outbox.ts').CloseCode} CloseCode
 * @typedef {import('./session.ts').Session} Session
 * @typedef {ReturnType<typeof createSessions>} Sessions
 */

/** Sessions are pinged in so many slices over the heartbeat, so that no turn of the event loop pings thousands. */
export const SLICES = 25

/** A client that is no longer read, or holds memory that others need, has this long to read the reason of its close. */
const CLOSE_READ_MS = 1_000

/**
 * Codes with which a client says that it is done, and will not come back at once. 1005 stands for a close without a
 * code, as a browser's `close()` sends (RFC 6455 section 7.4.1).
 */
const leavingCodes = new Set([1000, 1001, 1005])

/**
 * @param {object} deps
 * @param {Pick<import('../delivery/outbox.ts').Outbox, 'discard'>} deps.outbox
 * @param {Pick<import('../keys/admissions.ts').Admissions, 'drop'>} deps.admissions
 * @param {Pick<import('../presence/joins.ts').Joins, 'drop'>} deps.joins
 * @param {Pick<import('../access/backend/decisions.ts').Decisions, 'giveUp'>} deps.decisions
 * @param {Pick<import('./credentials.ts').Credentials, 'forget'>} deps.credentials
 * @param {Pick<import('./unfinished.ts').Unfinished, 'forget'>} deps.unfinished
 * @param {ReturnType<typeof import('./session-log.ts').createSessionLog>} deps.sessionLog
 * @param {Pick<import('@keycast/service').Containment, 'guard'>} [deps.containment]
 * @param {Pick<import('../counts.ts').Counts, 'closed'>} deps.counts
 */
export function createSessions({
  outbox,
  admissions,
  joins,
  decisions,
  credentials,
  unfinished,
  sessionLog,
  containment = noContainment,
  counts,
}) {
  /** @type {Set<Session>[]} */
  const slices = Array.from({ length: SLICES }, () => new Set())
  let added = 0
  let size = 0

  /** @param {Session} session */
  function add(session) {
    session.slice = added++ % SLICES
    slices[session.slice].add(session)
    size++
    sessionLog.opened(session)
  }

  /**
   * Ends a session now and closes its connection. Its queue is dropped: the outbox's `close` has that written first.
   *
   * @param {Session} session
   * @param {CloseCode} name
   * @param {boolean} [isUrgent] whether what its socket still holds must soon be gone
   */
  function end(session, name, isUrgent = false) {
    if (session.ended) return
    session.endReason = name
    detach(session)
    const { transport } = session
    // The client shut down its side or a close frame is out already. ws would wait, without a timer, until the client
    // has read everything: one that stopped reading would stay for ever.
    if (!transport.isOpen()) return transport.terminate()
    const { code, doc } = closeCodes[name]
    transport.close(code, doc)
    // It may go on sending at full speed. Unread that costs nothing, but the answer to the close is not read either.
    const isSending = name === 'abusive' || name === 'unfinished'
    if (isSending) transport.pause()
    if (isSending || isUrgent) setTimeout(() => transport.terminate(), CLOSE_READ_MS).unref()
  }

  /**
   * Cuts a connection that can carry no more messages.
   *
   * @param {Session} session
   * @param {string} reason for the metrics
   */
  function terminate(session, reason) {
    session.endReason ??= reason
    detach(session)
    session.transport.terminate()
  }

  /**
   * The session's connection is gone.
   *
   * @param {Session} session
   * @param {number} code
   */
  function closed(session, code) {
    detach(session, leavingCodes.has(code) ? 'now' : 'later')
    slices[session.slice].delete(session)
    size--
    const reason = session.endReason ?? reasonOf(code)
    countOne(counts.closed, reason)
    sessionLog.ended(session, reason)
  }

  /** @param {Session} session @param {import('@keycast/backbone').Leaving} [leaving] the rooms that it joined */
  function detach(session, leaving = 'later') {
    if (session.ended) return
    session.ended = true
    takeBack(session, leaving)
  }

  // Nothing else takes back what a session did: what it shares with others is in doubt where this fails.
  const takeBack = containment.guard(
    'session',
    (/** @type {Session} */ session, /** @type {import('@keycast/backbone').Leaving} */ leaving) => {
      admissions.drop(session)
      joins.drop(session, leaving)
      decisions.giveUp(session)
      credentials.forget(session)
      outbox.discard(session)
      unfinished.forget(session)
    },
    () => {},
    { isForAll: true },
  )

  function* all() {
    for (const slice of slices) yield* slice
  }

  return { add, end, terminate, closed, all, slices, size: () => size }
}

/** @param {number} code a connection was closed with, not by this gateway's own decision */
function reasonOf(code) {
  switch (code) {
    case 1006:
      return 'lost'
    case 1007:
      return 'badUtf8'
    case 1009:
      return 'tooBig'
    case 1002:
      return 'protocol'
    case 1008:
      return 'unfinished'
    default:
      return 'client'
  }
}
