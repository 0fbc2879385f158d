// Answers requests for parts of rooms' histories, one after the other for each session: the journal is asked for the next
// once the answer before is written. If the client does not read, the request waits without the messages.
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
  /** Sessions whose last request is being read, or its answer not written yet. @type {Set<Session>} */
  const reading = new Set()

  /**
   * @param {Session} session
   * @param {History} message
   */
  function history(session, message) {
    const problem = access.checkRoom(session.rights, 'read', message.key)
    if (problem) return refuse(session, message, problem)
    const waiting = session.pendingGets + session.deferredGets.length
    if (waiting >= getsWaitingMax) return refuse(session, message, { code: 'too_many_waiting' })
    // An answer has up to 1 MiB, which may fill the socket: then all that was read beside it would have to be read again.
    if (reading.has(session) || !outbox.isWritable(session)) return defer(session, message)
    const decision = decisions.applies(message.key) ? decisions.ask(session, message.key) : undefined
    if (decision instanceof Promise) return void waitForDecision(session, message, decision)
    if (decision) return refuse(session, message, decision)
    void read(session, message)
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
  async function read(session, message) {
    reading.add(session)
    session.pendingGets++
    const result = await histories.read(message)
    session.pendingGets--
    answer(session, message, result)
    outbox.fence(() => {
      reading.delete(session)
      readNext(session)
    })
  }

  /**
   * Resumes the session's requests, up to the first that is read. A session that takes no more now is resumed by the outbox.
   *
   * @param {Session} session
   */
  function readNext(session) {
    while (!reading.has(session) && outbox.isWritable(session)) {
      const index = session.deferredGets.findIndex(({ get }) => get.type === 'history')
      if (index === -1) return
      const [{ get: message }] = session.deferredGets.splice(index, 1)
      history(session, /** @type {History} */ (message))
    }
  }

  /**
   * @param {Session} session @param {History} message
   * @param {Awaited<ReturnType<import('../rooms/histories.js').Histories['read']>>} result
   */
  function answer(session, message, { problem, history: found }) {
    if (session.ended) return
    // The session's token was renewed during the wait, and the new one may not grant the room.
    const refusal = access.checkRoom(session.rights, 'read', message.key) ?? problem
    if (!found || refusal) return refuse(session, message, refusal ?? { code: 'journal_unavailable' })
    // The client stopped reading meanwhile: the messages are read again when it goes on.
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
