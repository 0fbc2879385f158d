// Answers one request for one value: from memory if that is fresh enough, else from the fetcher, asked once for all
// requests of the key. If the client does not read, its get waits without the value.
import { problemMessage } from '../keys/problem.js'

/**
 * @typedef {import('@keycast/protocol').Get} Get
 * @typedef {import('../sessions/session.js').Session} Session
 */

/** @param {Pick<import('./index.js').HandlerDeps, 'access' | 'decisions' | 'ownValues' | 'admissions' | 'values' | 'singleFlight' | 'outbox' | 'getsWaitingMax' | 'counts' | 'now'>} deps */
export const createGet = ({
  access,
  decisions,
  ownValues,
  admissions,
  values,
  singleFlight,
  outbox,
  getsWaitingMax,
  counts,
  now,
}) => {
  /**
   * @param {Session} session
   * @param {Get} message
   * @param {number} asOfMs the time at which the answer must be fresh: a get that waited is not asked for again because
   *   of its wait
   */
  function get(session, message, asOfMs) {
    const { key } = message
    const { rights, viewer } = session
    const problem = access.check(rights, 'read', key)
    if (problem) return sendProblem(session, message, problem)
    // Before anything is looked up: neither the answer nor its time tells whether a key exists that the viewer may not read.
    const decision = decisions.applies(key) ? decisions.ask(session, key) : undefined
    if (decision instanceof Promise) return waitForDecision(session, message, asOfMs, decision)
    if (decision) return sendProblem(session, message, decision)
    if (!outbox.isWritable(session)) return defer(session, message, asOfMs)

    const wireKey = ownValues.wireKeyOf(viewer, key)
    const result = values.fresh(wireKey, asOfMs)
    if (result) {
      counts.getHits++
      return answer(session, message, result)
    }
    counts.getMisses++
    if (!mayWait(session)) return sendProblem(session, message, tooManyWaiting)
    session.pendingGets++
    // Never rejects. For a session that ended meanwhile the outbox queues nothing.
    void singleFlight.want(wireKey).then(fetched => {
      session.pendingGets--
      // The session has another user by now, who may have another value.
      if (session.viewer !== viewer && wireKey !== key) {
        if (!session.ended) get(session, message, now())
        return
      }
      // The session's token was renewed during the wait, and the new one may not grant the key.
      const refusal = session.rights === rights ? undefined : access.check(session.rights, 'read', key)
      if (refusal) sendProblem(session, message, refusal)
      else if (outbox.isWritable(session)) answer(session, message, fetched)
      else defer(session, message, now() - (fetched.value ? fetched.ageMs : 0))
    })
  }

  /**
   * @param {Session} session
   * @param {Get} message
   * @param {number} asOfMs
   * @param {Promise<import('../keys/problem.js').Problem | undefined>} decision
   */
  function waitForDecision(session, message, asOfMs, decision) {
    if (!mayWait(session)) return sendProblem(session, message, tooManyWaiting)
    session.pendingGets++
    const { viewer } = session
    void decision.then(problem => {
      session.pendingGets--
      // An admitted viewer has a decision by now; for another viewer the backend must be asked.
      if (problem && session.viewer === viewer) sendProblem(session, message, problem)
      else if (!session.ended) get(session, message, asOfMs)
    })
  }

  /**
   * @param {Session} session
   * @param {Get} message
   * @param {import('../keys/entry.js').Result} result
   */
  function answer(session, message, { value, problem }) {
    const { id, key, version } = message
    if (problem) sendProblem(session, message, problem)
    else if (value.version === version) outbox.send(session, { type: 'current', id, key, version })
    else outbox.sendValue(session, value, id)
  }

  /**
   * The client does not read. Its get waits without the value, which may be a newer one by then.
   *
   * @param {Session} session
   * @param {Get} message
   * @param {number} asOfMs
   */
  function defer(session, message, asOfMs) {
    if (session.ended) return
    if (mayWait(session)) session.deferredGets.push({ get: message, asOfMs })
    else sendProblem(session, message, tooManyWaiting)
  }

  /** Whether one more get of the session may wait, for the fetcher or for its client. @param {Session} session */
  function mayWait({ pendingGets, deferredGets }) {
    return pendingGets + deferredGets.length < getsWaitingMax
  }

  /** @param {Session} session @param {Get} message @param {import('../keys/problem.js').Refusal} problem */
  function sendProblem(session, { id, key }, problem) {
    // The get says nothing about a subscription to the same key, which may stand.
    const subscribed = admissions.has(session, key)
    outbox.send(session, problemMessage(problem, now(), { id, key, subscribed }))
  }

  return get
}

/** @type {import('../keys/problem.js').Refusal} */
const tooManyWaiting = { code: 'too_many_waiting' }
