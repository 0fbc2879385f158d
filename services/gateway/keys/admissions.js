// Subscriptions to keys whose backend decides who reads them. One begins when the backend has admitted its viewer. While
// the backend cannot be asked it rests, and it ends when its viewer is refused.
import { errorMessage } from '@keycast/protocol'
import { createProblem, retryAfterMsOf } from './problem.js'

/**
 * @typedef {import('../sessions/session.js').Session} Session
 * @typedef {import('./problem.js').Problem} Problem
 * @typedef {ReturnType<typeof createAdmissions>} Admissions
 *
 * A key that a session asked to be subscribed to. `version`: that its client holds. `toldCode`: of the failure it was told.
 * @typedef {{ version: string | undefined, toldCode: import('@keycast/protocol').ErrorCode | undefined }} Awaited
 */

/**
 * @param {object} deps
 * @param {Pick<import('../access/access.js').Access, 'check' | 'refusalOf'>} deps.access
 * @param {Pick<import('../access/backend/decisions.js').Decisions, 'applies' | 'join' | 'leave'>} deps.decisions
 * @param {Pick<import('./own-values.js').OwnValues, 'areOf'>} deps.ownValues
 * @param {Pick<import('./subscriptions.js').Subscriptions, 'add'>} deps.subscriptions
 * @param {Pick<import('./endings.js').Endings, 'remove' | 'drop'>} deps.endings
 * @param {Pick<import('./places.js').Places, 'take' | 'leave'>} deps.places
 * @param {Pick<import('../delivery/outbox.js').Outbox, 'send'>} deps.outbox
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createAdmissions({ access, decisions, ownValues, subscriptions, endings, places, outbox, now }) {
  let awaiting = 0

  /**
   * Subscribes a session to a key, now or once its viewer is admitted. One that is subscribed is sent the key's state
   * again.
   *
   * @param {Session} session
   * @param {string} key as a client sent it
   * @param {string | undefined} version the client holds
   * @returns {Problem | undefined} why it was not subscribed
   */
  function subscribe(session, key, version) {
    // Rights come first: the backend is not asked what the viewer's rights do not cover.
    const refusal = access.check(session.rights, 'read', key)
    if (refusal) return refusal
    if (!decisions.applies(key) || session.subscriptions.has(key)) return subscriptions.add(session, key, version)
    const awaited = session.awaited?.get(key)
    if (awaited) {
      Object.assign(awaited, { version, toldCode: undefined })
      return undefined
    }
    // Until it is known whether it is admitted the subscription has its place.
    const code = places.take(session)
    if (code) return createProblem(code, now())
    const { isAdmitted, problem } = decisions.join(session, key)
    if (!problem && !isAdmitted) {
      wait(session, key, version)
      return undefined
    }
    places.leave(session)
    if (problem) return problem
    const full = subscriptions.add(session, key, version)
    if (full) decisions.leave(session, key)
    return full
  }

  /** @param {Session} session @param {string} key @param {string | undefined} version */
  function wait(session, key, version) {
    session.awaited ??= new Map()
    session.awaited.set(key, { version, toldCode: undefined })
    awaiting++
  }

  /** @param {Session} session @param {string} key @returns {Awaited | undefined} what it waited for */
  function stopAwaiting(session, key) {
    const awaited = session.awaited?.get(key)
    if (!awaited) return undefined
    session.awaited?.delete(key)
    awaiting--
    places.leave(session)
    return awaited
  }

  /**
   * Ends a session's subscription to a key, or its wait for one: nothing of the key is written after.
   *
   * @param {Session} session
   * @param {string} key
   */
  function unsubscribe(session, key) {
    stopAwaiting(session, key)
    endings.remove(session, key)
    decisions.leave(session, key)
  }

  /**
   * What the backend decided, for one session of the viewer.
   *
   * @param {Session} session
   * @param {string} key
   * @param {Problem | undefined} problem why its viewer may not read the key now
   */
  function decided(session, key, problem) {
    if (!problem) {
      const awaited = stopAwaiting(session, key)
      if (!awaited) return
      const full = subscriptions.add(session, key, awaited.version)
      return full && end(session, key, full)
    }
    if (problem.retryAfterMs === undefined) return end(session, key, problem)
    if (session.subscriptions.has(key)) {
      endings.remove(session, key)
      // It has just left one.
      places.take(session)
      wait(session, key, undefined)
    }
    const awaited = session.awaited?.get(key)
    if (!awaited || awaited.toldCode === problem.code) return
    awaited.toldCode = problem.code
    tell(session, key, problem, true)
  }

  /** @param {Session} session @param {string} key @param {Problem} problem */
  function end(session, key, problem) {
    unsubscribe(session, key)
    tell(session, key, problem, false)
  }

  /** @param {Session} session @param {string} key @param {Problem} problem @param {boolean} subscribed */
  function tell(session, key, problem, subscribed) {
    const { code, message } = problem
    outbox.send(session, errorMessage(code, { key, subscribed, message, retryAfterMs: retryAfterMsOf(problem, now()) }))
  }

  /** @param {Session} session @returns {string[]} what it is subscribed to, or waits for */
  const keysOf = session => [...session.subscriptions.keys(), ...(session.awaited?.keys() ?? [])]

  return {
    subscribe,
    unsubscribe,
    decided,

    /** Ends what the session's rights do not cover any more. @param {Session} session */
    endUncovered(session) {
      for (const key of keysOf(session)) {
        const problem = access.refusalOf(session.rights, 'read', key)
        if (problem) end(session, key, problem)
      }
    },

    /**
     * The session has another viewer: what was decided for the one before says nothing, and what was its own is not this
     * one's.
     *
     * @param {Session} session
     * @param {() => void} change makes it so
     */
    changeViewer(session, change) {
      const keys = keysOf(session).filter(key => decisions.applies(key) || ownValues.areOf(key))
      for (const key of keys) unsubscribe(session, key)
      change()
      for (const key of keys) {
        const problem = subscribe(session, key, undefined)
        if (problem) tell(session, key, problem, false)
      }
    },

    /** @param {Session} session that ended */
    drop(session) {
      if (session.viewer) for (const key of keysOf(session)) if (decisions.applies(key)) unsubscribe(session, key)
      endings.drop(session)
    },

    /** Whether the session waits for something about the key, or is subscribed to it. @param {Session} session @param {string} key */
    has: (session, key) => session.subscriptions.has(key) || session.awaited?.has(key) === true,

    stats: () => ({ awaiting }),
  }
}
