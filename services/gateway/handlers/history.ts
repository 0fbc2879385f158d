// Answers requests for parts of rooms' histories, one after the other for each session: the journal is asked for the next
// once the answer before is written. If the client does not read, the request waits without the messages.
import { historyBody } from '@keycast/protocol'
import { isRefusal } from '../gate/gate.ts'
import { problemMessage } from '../keys/problem.ts'
import { isSubscribed } from '../sessions/session.ts'
import { textFrame } from '../transport/frames.ts'

/**
 * @typedef {import('@keycast/protocol').History} History
 * @typedef {import('../sessions/session.ts').Session} Session
 */

/** @param {Pick<import('./index.ts').HandlerDeps, 'gate' | 'histories' | 'outbox' | 'getsWaitingMax' | 'containment' | 'counts' | 'now'>} deps */
export const createHistory = ({ gate, histories, outbox, getsWaitingMax, containment, counts, now }) => {
  /** For requests that waited: no caller is there to see their errors. */
  const again = containment.guard('session', history, session => outbox.close(session, 'internalError'))
  /** Sessions whose last request is being read, or its answer not written yet. @type {Set<Session>} */
  const reading = new Set()

  /**
   * @param {Session} session
   * @param {History} message
   * @returns {Promise<void> | void} once it is answered, or waits for its client
   */
  function history(session, message) {
    const problem = gate.check(session.rights, 'history', message.key)
    if (problem) return refuse(session, message, problem)
    const waiting = session.pendingGets + session.deferredGets.length
    if (waiting >= getsWaitingMax) return refuse(session, message, { code: 'too_many_waiting' })
    // An answer has up to 1 MiB, which may fill the socket: then all that was read beside it would have to be read again.
    if (reading.has(session) || !outbox.isWritable(session)) return defer(session, message)
    const entered = gate.enter(session, 'history', message.key)
    if (entered instanceof Promise) return waitToEnter(session, message, entered)
    return isRefusal(entered) ? refuse(session, message, entered) : read(session, message, entered)
  }

  /**
   * @param {Session} session @param {History} message
   * @param {Promise<import('../gate/gate.ts').Admitted | import('../keys/problem.ts').Refusal>} entering
   */
  async function waitToEnter(session, message, entering) {
    session.pendingGets++
    const entered = await entering
    session.pendingGets--
    if (session.ended) return
    if (isRefusal(entered)) return refuse(session, message, entered)
    // Another request may be read by now. The decision stands.
    return history(session, message)
  }

  /** @param {Session} session @param {History} message @param {import('../gate/gate.ts').Admitted} admitted */
  async function read(session, message, admitted) {
    reading.add(session)
    session.pendingGets++
    const result = await histories.read(message)
    session.pendingGets--
    answer(session, message, result, admitted)
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
      again(session, /** @type {History} */ (message))
    }
  }

  /**
   * @param {Session} session @param {History} message
   * @param {Awaited<ReturnType<import('../rooms/histories.ts').Histories['read']>>} result
   * @param {import('../gate/gate.ts').Admitted} admitted
   */
  function answer(session, message, { problem, history: found }, admitted) {
    if (session.ended) return
    const changed = gate.recheck(admitted)
    if (changed === 'again') return defer(session, message)
    const refusal = changed ?? problem
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

  /** @param {Session} session @param {History} message @param {import('../keys/problem.ts').Refusal} refusal */
  function refuse(session, { id, key }, refusal) {
    outbox.send(session, problemMessage(refusal, now(), { id, key, subscribed: isSubscribed(session, key) }))
  }

  return history
}
