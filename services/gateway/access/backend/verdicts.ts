// One decision: asks the backend whether a viewer may read a key, and says how long the answer holds. decisions.ts knows
// the sessions and requests that wait for it.
import { REFUSED_BY_BACKEND, viewerKey } from '@keycast/backbone'
import { errorCodes } from '@keycast/protocol'
import { ANSWER_GRACE_MS } from '@keycast/service'
import { createProblem, silentFetcher } from '../../keys/problem.ts'
import { chooseCredentials, hasNewToken, isExpiryRefused, newTokenChoice, noteRefused } from './token-choice.ts'

/**
 * @typedef {import('../../keys/problem.ts').Problem} Problem
 * @typedef {import('../../sessions/session.ts').Session} Session
 * @typedef {import('./viewers.ts').Viewer} Viewer
 *
 * The end of a question.
 * @typedef {object} Answer
 * @property {import('@keycast/backbone').Decision | undefined} said `undefined` if no answer came in time
 * @property {number | undefined} expiresAtMs of the token that it was asked with
 * @property {number} revokedAtMs the viewer's, when the question was sent
 *
 * @typedef {object} Decision
 * @property {Viewer} viewer
 * @property {string} key
 * @property {import('@keycast/service').Deciding} namespace
 * @property {number} admittedAtMs when the backend last admitted the viewer, unless it refused since
 * @property {Problem | undefined} problem the reason why the viewer is not admitted, or why its last question failed
 * @property {number} problemUntilMs until when that need not be asked again
 * @property {import('./token-choice.ts').TokenChoice} choice with which of the viewer's tokens the backend is asked
 * @property {boolean} isAsking
 * @property {Set<Waiter> | undefined} waiters
 * @property {Map<Session, number>} sessions the viewer's sessions that are in the key, or wait to be, each with its
 *   roles: see SUBSCRIBED of decisions.ts
 * @property {number} calendarPage its page in the calendar; Infinity if it has none
 */

/**
 * A request that waits for a decision.
 *
 * @typedef {{ asker: import('./decisions.ts').Asker, decision: Decision, settle: (problem: Problem | undefined) => void }} Waiter
 */

/** Until then another gateway may not have heard of a revocation, and have asked with the revoked token. */
const REVOCATION_SPREAD_MS = 1_000

/** When to ask again where nothing says when, or the viewer's token has expired and may be renewed. */
const RETRY_MS = 1_000

/**
 * @param {object} deps
 * @param {Pick<import('@keycast/backbone').Backbone, 'authorize' | 'nodesAlive'>} deps.backbone
 * @param {() => number} deps.now monotonic, in milliseconds
 * @param {() => number} deps.wallNow in milliseconds since 1970
 */
export function createVerdicts({ backbone, now, wallNow }) {
  /**
   * The present verdict, without asking. `isAdmitted` is also true if the backend cannot be asked, and admitted the
   * viewer less than twice `keep` ago.
   *
   * @param {Decision} decision
   * @returns {{ isAdmitted: boolean, problem?: Problem } | undefined} `undefined` where the backend has to be asked
   */
  function standing(decision) {
    const { viewer, admittedAtMs, problem, problemUntilMs, choice } = decision
    const nowMs = now()
    if (nowMs - admittedAtMs < keepMsOf(decision)) return { isAdmitted: true }
    // A token that came since may be good for more than the one that was asked with.
    if (!problem || nowMs >= problemUntilMs || hasNewToken(viewer, choice, wallNow())) return undefined
    return isWithinGrace(decision) ? { isAdmitted: true } : { isAdmitted: false, problem }
  }

  /** @param {Decision} decision */
  const isWithinGrace = decision => now() - decision.admittedAtMs < 2 * keepMsOf(decision)

  /**
   * @param {Decision} decision
   * @returns {Promise<Answer> | undefined} `undefined` where the viewer's tokens have expired
   */
  function ask(decision) {
    const { viewer, key, namespace, choice } = decision
    const credentials = chooseCredentials(viewer, choice, wallNow())
    if (!credentials) return undefined
    // A refusal of other tokens is told to nobody while the backend is asked with this one.
    if (decision.problem?.code === 'forbidden') decision.problem = undefined
    const deadlineMs = (namespace.timeoutMs ?? 0) + ANSWER_GRACE_MS
    const { revokedAtMs } = viewer
    const asked = { deadlineMs, maxAgeMs: maxAgeMsOf(decision) }
    const answer = backbone.authorize(viewerKey(key, viewer.name), credentials, asked)
    return answer.then(said => ({ said, expiresAtMs: credentials.expiresAt, revokedAtMs }))
  }

  /**
   * Nodes hear of no revocation. One that keeps what the backend said to a token revoked since must ask it again.
   *
   * @param {Decision} decision
   * @returns {number | undefined} the greatest age of an answer, if that matters
   */
  function maxAgeMsOf(decision) {
    const sinceMs = now() - decision.viewer.revokedAtMs - REVOCATION_SPREAD_MS
    return sinceMs < 2 * keepMsOf(decision) ? Math.max(0, sinceMs) : undefined
  }

  /**
   * Takes what came of a question.
   *
   * @param {Decision} decision
   * @param {Answer | undefined} answer `undefined` where the backend was not asked
   * @returns {boolean} false where it settles nothing: the backend has to be asked again
   */
  function take(decision, answer) {
    const { viewer, choice } = decision
    // A token was revoked meanwhile, perhaps the one that was asked with.
    if (answer && answer.revokedAtMs !== viewer.revokedAtMs) return false
    const nowMs = now()
    const { verdict, ageMs = Number.POSITIVE_INFINITY } = answer?.said ?? {}
    if (verdict === 'admitted') {
      decision.admittedAtMs = nowMs - ageMs
      decision.problem = undefined
    } else if (verdict === 'refused') {
      decision.admittedAtMs = Number.NEGATIVE_INFINITY
      if (noteRefused(viewer, choice, wallNow())) return false
      decision.problem = refusalOf(decision, answer?.expiresAtMs, ageMs)
      decision.problemUntilMs = nowMs + (decision.problem.retryAfterMs ?? keepMsOf(decision) - ageMs)
    } else {
      // Another gateway may have heard it admitted later than this one.
      decision.admittedAtMs = Math.max(decision.admittedAtMs, nowMs - ageMs)
      decision.problem = failureOf(answer)
      decision.problemUntilMs = nowMs + (decision.problem.retryAfterMs ?? RETRY_MS)
    }
    return true
  }

  /**
   * A refusal may be no more than the end of the token: the user's next one may be good.
   *
   * @param {Decision} decision
   * @param {number | undefined} expiresAtMs of the token
   * @param {number} ageMs the time since the refusal
   */
  function refusalOf({ viewer, choice }, expiresAtMs = Number.POSITIVE_INFINITY, ageMs) {
    const wallNowMs = wallNow()
    if (isExpiryRefused(viewer, choice, expiresAtMs, wallNowMs - ageMs)) return tokenExpired(expiresAtMs - wallNowMs)
    return createProblem('forbidden', now(), { message: REFUSED_BY_BACKEND })
  }

  /** @param {number} [msLeft] for how long it is still valid by this clock */
  function tokenExpired(msLeft = 0) {
    const retryAfterMs = Math.max(RETRY_MS, msLeft)
    return createProblem('token_expired', now(), { message: errorCodes.token_expired, retryAfterMs })
  }

  /** @param {Answer | undefined} answer says nothing of use */
  function failureOf(answer) {
    if (!answer) return tokenExpired()
    if (!answer.said) return silentFetcher(backbone.nodesAlive(), now())
    const { message, retryAfterMs = RETRY_MS } = answer.said
    return createProblem('backend_error', now(), { message, retryAfterMs: Math.ceil(retryAfterMs) })
  }

  return { standing, isWithinGrace, ask, take }
}

/** @param {Viewer} viewer @param {string} key @param {import('@keycast/service').Deciding} namespace @returns {Decision} */
export function newDecision(viewer, key, namespace) {
  return {
    viewer,
    key,
    namespace,
    admittedAtMs: Number.NEGATIVE_INFINITY,
    problem: undefined,
    problemUntilMs: Number.NEGATIVE_INFINITY,
    choice: newTokenChoice(),
    isAsking: false,
    waiters: undefined,
    sessions: new Map(),
    calendarPage: Number.POSITIVE_INFINITY,
  }
}

/** @param {Decision} decision */
export const keepMsOf = ({ namespace }) =>
  /** @type {import('@keycast/service').Authorize} */ (namespace.authorize).keepMs
