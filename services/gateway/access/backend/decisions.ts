// The backends' decisions whether a viewer may read a key of a namespace with `authorize`. A backend is asked once per
// viewer, key and `keep`, for all sessions and requests of the viewer; and again each `keep` while one of them is
// subscribed.
import { namespaceOf } from '@keycast/protocol'
import { createUniqueQueue, TURN_MS } from '@keycast/service'
import { createCalendar } from '../../keys/calendar.ts'
import { createProblem, silentFetcher } from '../../keys/problem.ts'
import { createQuestionQueue } from './question-queue.ts'
import { createVerdicts, keepMsOf, newDecision } from './verdicts.ts'

/**
 * @typedef {import('../../keys/problem.ts').Problem} Problem
 * @typedef {import('../../sessions/session.ts').Session} Session
 * @typedef {import('./verdicts.ts').Decision} Decision
 * @typedef {import('./verdicts.ts').Waiter} Waiter
 * @typedef {import('./viewers.ts').Viewer} Viewer
 * @typedef {ReturnType<typeof createDecisions>} Decisions
 *
 * For whom a door asks: a session, or the sender of an HTTP request.
 * @typedef {Pick<Session, 'viewer' | 'account'>} Asker
 */

/** The roles of a session in a key, one or both. */
export const SUBSCRIBED = 1
export const JOINED = 2

/** The reasons why a viewer is not admitted. Metrics have them at zero from the start. */
export const decisionCodes = Object.freeze(
  /** @type {const} */ ([
    'forbidden',
    'backend_error',
    'fetcher_timeout',
    'fetcher_unavailable',
    'token_expired',
    'too_many_waiting',
  ]),
)

/** Decisions that nobody is subscribed under: at some 400 bytes each they take 8 MB. */
const IDLE_MAX = 20_000

/** Requests that wait for a decision. */
const WAITING_MAX = 20_000

/** When to come back where there are more, or the viewer's token has expired and may be renewed. */
const RETRY_MS = 1_000

/**
 * @param {object} deps
 * @param {{ get: (name: string) => import('@keycast/service').Deciding | undefined }} deps.namespaces of values and rooms
 * @param {Pick<import('@keycast/backbone').Backbone, 'authorize' | 'nodesAlive'>} deps.backbone
 * @param {(session: Session, key: string, problem: Problem | undefined) => void} deps.onDecided of each of a decision's
 *   sessions: it may read the key, or why not. May be called again with the same
 * @param {Pick<import('../../counts.ts').Counts, 'decisions' | 'accessRefused'>} deps.counts
 * @param {() => number} deps.now monotonic, in milliseconds
 * @param {() => number} deps.wallNow in milliseconds since 1970
 */
export function createDecisions({ namespaces, backbone, onDecided, counts, now, wallNow }) {
  /** @type {import('../../keys/calendar.ts').Calendar<Decision>} */
  const calendar = createCalendar()
  /** @type {import('@keycast/service').UniqueQueue<Decision>} */
  const idle = createUniqueQueue()
  const verdicts = createVerdicts({ backbone, now, wallNow })
  const { standing, isWithinGrace } = verdicts
  const questions = createQuestionQueue({ ask: verdicts.ask, conclude, now })
  /** The requests that wait, by who asked. @type {Map<Asker, Set<Waiter>>} */
  const waits = new Map()
  let waiting = 0

  /** The backend of this key's namespace decides, too. @param {string} key that passed the gate */
  const applies = key => namespaces.get(namespaceOf(key))?.authorize !== undefined

  /** @param {Viewer | undefined} viewer @param {string} key @returns {Decision} */
  function open(viewer, key) {
    const namespace = namespaces.get(namespaceOf(key))
    // Without a viewer a door forgot to say for whom it asks.
    if (!viewer || !namespace?.authorize) throw new Error(`no viewer for ${key}, or nobody to ask`)
    const known = viewer.decisions.get(key)
    if (known) return known
    const decision = newDecision(viewer, key, namespace)
    viewer.decisions.set(key, decision)
    return decision
  }

  /**
   * Whether a viewer may read a key of which {@link applies} is true.
   *
   * @param {Asker} asker
   * @param {string} key
   * @returns {Problem | undefined | Promise<Problem | undefined>} `undefined`: it may. Never rejects
   */
  function ask(asker, key) {
    const decision = open(asker.viewer, key)
    const known = standing(decision)
    if (known) {
      counts.decisions.memory++
      rest(decision)
      return known.isAdmitted ? undefined : countRefusal(known.problem)
    }
    if (waiting >= WAITING_MAX) {
      rest(decision)
      return createProblem('too_many_waiting', now(), { retryAfterMs: RETRY_MS })
    }
    return new Promise(resolve => {
      const settle = (/** @type {Problem | undefined} */ problem) => resolve(countRefusal(problem))
      wait({ asker, decision, settle })
      question(decision, laneOf(asker))
    })
  }

  /** @param {Waiter} waiter */
  function wait(waiter) {
    const { asker, decision } = waiter
    waiting++
    decision.waiters ??= new Set()
    decision.waiters.add(waiter)
    const own = waits.get(asker) ?? new Set()
    waits.set(asker, own.add(waiter))
  }

  /** @param {Waiter} waiter @param {Problem | undefined} problem why it may not read */
  function settle(waiter, problem) {
    const { asker, decision } = waiter
    waiting--
    decision.waiters?.delete(waiter)
    const own = waits.get(asker)
    own?.delete(waiter)
    if (own?.size === 0) waits.delete(asker)
    waiter.settle(problem)
  }

  /**
   * A session subscribes to a key of which {@link applies} is true, or joined the room. Unless it is refused here it stays
   * with the decision until {@link unregister}, and is told by `onDecided`.
   *
   * @param {Session} session
   * @param {string} key
   * @param {number} what
   * @returns {{ isAdmitted: boolean, problem?: Problem }} without a problem the decision is still to come
   */
  function register(session, key, what) {
    const decision = open(session.viewer, key)
    const known = standing(decision)
    if (known) counts.decisions.memory++
    if (known?.problem?.code === 'forbidden') {
      rest(decision)
      countRefusal(known.problem)
      return known
    }
    idle.delete(decision)
    decision.sessions.set(session, (decision.sessions.get(session) ?? 0) | what)
    if (!known) question(decision, laneOf(session))
    else if (known.problem) {
      const { problem } = known
      // After what answers the subscribe.
      queueMicrotask(() => decision.sessions.has(session) && onDecided(session, key, problem))
    }
    schedule(decision)
    return { isAdmitted: known?.isAdmitted === true }
  }

  /** @param {Session} session @param {string} key @param {number} what */
  function unregister(session, key, what) {
    const decision = session.viewer?.decisions.get(key)
    const whats = decision?.sessions.get(session)
    if (!decision || whats === undefined) return
    if ((whats & ~what) !== 0) return void decision.sessions.set(session, whats & ~what)
    decision.sessions.delete(session)
    rest(decision)
  }

  /** Keeps a decision that nobody needs now, as long as there is room. @param {Decision} decision */
  function rest(decision) {
    if (isWaitedFor(decision)) return
    // Somebody may go through keys faster than a backend answers. Each question left behind would be asked all the same.
    if (decision.isAsking && questions.cancel(decision)) decision.isAsking = false
    if (decision.isAsking) return
    calendar.cancel(decision)
    idle.delete(decision)
    if (!isDecided(decision)) return drop(decision)
    idle.add(decision)
    while (idle.size > IDLE_MAX) drop(/** @type {Decision} */ (idle.take()))
  }

  /** Whether the backend said anything of it. @param {Decision} decision */
  const isDecided = ({ admittedAtMs, problem }) => admittedAtMs > Number.NEGATIVE_INFINITY || problem !== undefined

  /** @param {Decision} decision */
  function drop({ viewer, key }) {
    viewer.decisions.delete(key)
  }

  /** @param {Decision} decision @param {unknown} lane for whom; those of one viewer take turns */
  function question(decision, lane) {
    if (decision.isAsking) {
      counts.decisions.coalesced++
      return questions.coalesce(decision, lane)
    }
    counts.decisions.asked++
    decision.isAsking = true
    idle.delete(decision)
    questions.add(decision, lane)
  }

  /**
   * @param {Decision} decision
   * @param {import('./verdicts.ts').Answer | undefined} answer `undefined` where the backend was not asked
   */
  function conclude(decision, answer) {
    decision.isAsking = false
    if (!verdicts.take(decision, answer)) {
      return isWaitedFor(decision) ? question(decision, laneOf(firstSession(decision))) : rest(decision)
    }
    const problem = isWithinGrace(decision) ? undefined : decision.problem
    const { waiters = [] } = decision
    decision.waiters = undefined
    for (const waiter of waiters) settle(waiter, problem)
    tellSessions(decision, problem)
    if (decision.sessions.size === 0) rest(decision)
    else schedule(decision)
  }

  /** @param {Decision} decision @param {Problem | undefined} problem */
  function tellSessions(decision, problem) {
    for (const session of [...decision.sessions.keys()]) {
      if (problem?.code === 'forbidden') countRefusal(problem)
      onDecided(session, decision.key, problem)
    }
  }

  /** Has a decision that sessions are subscribed under looked at when something has to be done. @param {Decision} decision */
  function schedule(decision) {
    const { admittedAtMs, problem, problemUntilMs } = decision
    const keepMs = keepMsOf(decision)
    const keptUntilMs = admittedAtMs + keepMs
    // While the backend is asked, or cannot be: the end of what it said before.
    const graceUntilMs = keptUntilMs + keepMs
    const askAtMs = problem ? problemUntilMs : keptUntilMs
    if (decision.isAsking) {
      if (graceUntilMs > now()) calendar.schedule(decision, graceUntilMs)
    } else calendar.schedule(decision, graceUntilMs > now() ? Math.min(askAtMs, graceUntilMs) : askAtMs)
  }

  /** @param {Decision} decision sessions are subscribed under it */
  function look(decision) {
    if (!isWithinGrace(decision)) {
      const { problem } = decision
      tellSessions(decision, problem ? { ...problem, atMs: now() } : silentFetcher(backbone.nodesAlive(), now()))
    }
    if (decision.sessions.size === 0) return
    if (!standing(decision)) question(decision, laneOf(firstSession(decision)))
    schedule(decision)
  }

  /** @param {Problem | undefined} problem */
  function countRefusal(problem) {
    if (problem?.code === 'forbidden') counts.accessRefused.forbidden++
    return problem
  }

  return {
    applies,
    ask,
    register,
    unregister,

    /**
     * The asker is gone: none of its requests waits any more. Nobody is asked what nobody waits for.
     *
     * @param {Asker} asker
     */
    giveUp(asker) {
      for (const waiter of waits.get(asker) ?? []) {
        settle(waiter, gone)
        rest(waiter.decision)
      }
    },

    /** A viewer is not known any more, or its tokens were revoked: what was decided for it does not hold. @param {Viewer} viewer */
    forget(viewer) {
      for (const decision of viewer.decisions.values()) {
        decision.admittedAtMs = Math.min(decision.admittedAtMs, now() - keepMsOf(decision))
        decision.problemUntilMs = Number.NEGATIVE_INFINITY
        if (idle.delete(decision)) drop(decision)
        else if (decision.sessions.size > 0) calendar.schedule(decision, now())
      }
    },

    /** Asks again where that is due. */
    sweep() {
      const endsAtMs = now() + TURN_MS
      for (let due = calendar.takeDue(now()); due; due = calendar.takeDue(now())) {
        look(due)
        // The rest comes with the next sweep.
        if (now() >= endsAtMs) return
      }
    },
  }
}

/** One whose proxy names no client has no account, and stands for itself. @param {Asker | undefined} asker */
const laneOf = asker => asker?.account ?? asker

/** @param {Decision} decision @returns {Session | undefined} */
const firstSession = ({ sessions }) => sessions.keys().next().value

/** @param {Decision} decision */
const isWaitedFor = ({ sessions, waiters }) => sessions.size > 0 || (waiters?.size ?? 0) > 0

/** Nobody is told: the session is gone. @type {Problem} */
const gone = { code: 'too_many_waiting', message: 'the session ended', retryAfterMs: undefined, atMs: 0, isLocal: true }
