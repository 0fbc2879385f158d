// Answers one request for a part of a room's history. If the client does not read, the request waits without the
// messages.
import { historyBody } from '@keycast/protocol'
import { problemMessage } from '../keys/problem.js'
import { isSubscribed } from '../sessions/session.js'
import { textFrame } from '../transport/frames.js'

/**
 * @typedef {import('@keycast/protocol').History} History
 * @typedef {import('../sessions/session.js').Session} Session
 */

/** @param {Pick<import('./index.js').HandlerDeps, 'access' | 'decisions' | 'histories' | 'outbox' | 'getsWaitingMax' | 'counts' | 'now'>} deps */
export const createHistory = ({ access, decisions, histories, outbox, getsWaitingMax, counts, now }) => {
  /**
   * @param {Session} session
   * @param {History} message
   */
  function history(session, message) {
    const problem = access.checkRoom(session.rights, 'read', message.key)
    if (problem) return refuse(session, message, problem)
    const waiting = session.pendingGets + session.deferredGets.length
    if (waiting >= getsWaitingMax) return refuse(session, message, { code: 'too_many_waiting' })
    const decision = decisions.applies(message.key) ? decisions.ask(session, message.key) : undefined
    if (decision instanceof Promise) return void waitForDecision(session, message, decision)
    if (decision) return refuse(session, message, decision)
    if (!outbox.isWritable(session)) return defer(session, message)
    void answer(session, message)
  }

  /**
   * @param {Session} session @param {History} message
   * @param {Promise<import('../keys/problem.js').Problem | undefined>} decision
   */
  async function waitForDecision(session, message, decision) {
    session.pendingGets++
    const { viewer } = session
    const problem = await decision
    session.pendingGets--
    if (session.ended) return
    // An admitted viewer has a decision by now; for another viewer the backend must be asked.
    if (!problem || session.viewer !== viewer) return history(session, message)
    refuse(session, message, problem)
  }

  /** @param {Session} session @param {History} message */
  async function answer(session, message) {
    session.pendingGets++
    const { problem, history: found } = await histories.read(message)
    session.pendingGets--
    if (session.ended) return
    // The session's token was renewed during the wait, and the new one may not grant the room.
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

  /** @param {Session} session @param {History} message @param {import('../keys/problem.js').Refusal} refusal */
  function refuse(session, { id, key }, refusal) {
    outbox.send(session, problemMessage(refusal, now(), { id, key, subscribed: isSubscribed(session, key) }))
  }

  return history
}
