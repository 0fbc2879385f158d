// A part of a room's history for one request. It waits, unread, while its client does not read.
import { errorMessage, historyBody } from '@keycast/protocol'
import { retryAfterMsOf } from '../keys/problem.js'
import { textFrame } from '../transport/frames.js'

/**
 * @typedef {import('@keycast/protocol').History} History
 * @typedef {import('../sessions/session.js').Session} Session
 */

/** @param {Pick<import('./index.js').HandlerDeps, 'access' | 'histories' | 'outbox' | 'getsWaitingMax' | 'counts' | 'now'>} deps */
export const createHistory = ({ access, histories, outbox, getsWaitingMax, counts, now }) => {
  /**
   * @param {Session} session
   * @param {History} message
   */
  function history(session, message) {
    const problem = access.checkRoom(session.rights, 'read', message.key)
    if (problem) return refuse(session, message, { ...problem, retryAfterMs: retryAfterMsOf(problem, now()) })
    const waiting = session.pendingGets + session.deferredGets.length
    if (waiting >= getsWaitingMax) return refuse(session, message, { code: 'too_many_waiting' })
    if (!outbox.isWritable(session)) return defer(session, message)
    void answer(session, message)
  }

  /** @param {Session} session @param {History} message */
  async function answer(session, message) {
    session.pendingGets++
    const { problem, history: found } = await histories.read(message)
    session.pendingGets--
    if (session.ended) return
    // Its token was renewed while it waited, and may not grant the room any more.
    const refusal = access.checkRoom(session.rights, 'read', message.key) ?? problem
    if (!found || refusal) return refuse(session, message, refusal ?? { code: 'journal_unavailable' })
    // Up to 1 MiB for a client that does not read: it is read again when the client does.
    if (!outbox.isWritable(session)) return defer(session, message)
    const { type, id, key } = message
    const { messages, ...head } = found
    counts.sent.history++
    outbox.sendFrame(session, textFrame('', historyBody({ type, id, key, ...head }, messages)).frame)
  }

  /** @param {Session} session @param {History} message */
  function defer(session, message) {
    session.deferredGets.push({ get: message, asOfMs: now() })
  }

  /**
   * @param {Session} session @param {History} message
   * @param {{ code: import('@keycast/protocol').ErrorCode, message?: string, retryAfterMs?: number }} problem
   */
  function refuse(session, { id, key }, { code, message, retryAfterMs }) {
    const subscribed = session.subscriptions.has(key)
    outbox.send(session, errorMessage(code, { id, key, subscribed, message, retryAfterMs }))
  }

  return history
}
