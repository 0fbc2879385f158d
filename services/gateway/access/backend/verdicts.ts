// One decision: asks the backend whether a viewer may read a key, and says how long the answer holds. decisions.ts knows
// the sessions and requests that wait for it.
import { type Backbone, type Decision as DecisionOf, REFUSED_BY_BACKEND, viewerKey } from '@keycast/backbone'
import type { Problem } from '@keycast/protocol'
import { ANSWER_GRACE_MS, type Authorize, type Deciding, type Payer, type World } from '@keycast/service'
import type { Asker } from '../../gate/gate.ts'
import type { Session } from '../../sessions/session.ts'
import { problemNow, silentFetcher } from '../../topics/values/failure.ts'
import {
  chooseCredentials,
  hasNewToken,
  isExpiryRefused,
  newTokenChoice,
  noteRefused,
  type TokenChoice,
} from './token-choice.ts'
import type { Viewer } from './viewers.ts'

/** The end of a question. */
export interface Answer {
  /** `undefined` if no answer came in time. */
  said: DecisionOf | undefined
  /** Of the token that it was asked with. */
  expiresAtMs: number | undefined
  /** The viewer's, when the question was sent. */
  revokedAtMs: number
  /** The decision's, then. */
  askedAgainAtMs: number
}

export interface Decision {
  viewer: Viewer
  key: string
  namespace: Deciding
  /** Its namespace's, as long as that has one. */
  authorize: Authorize
  /** An answer to an earlier question counts no more; -Infinity if none was asked again for. */
  askedAgainAtMs: number
  /** When the backend last admitted the viewer, unless it refused since. */
  admittedAtMs: number
  /** The reason why the viewer is not admitted, or why its last question failed. */
  problem: Problem | undefined
  /** Until when that need not be asked again. */
  problemUntilMs: number
  /** With which of the viewer's tokens the backend is asked. */
  choice: TokenChoice
  /** For whom the backend is asked, of those who want to know. */
  payer: Payer | undefined
  isAsking: boolean
  waiters: Set<Waiter> | undefined
  /** The viewer's sessions that are in the key, or wait to be, each with its roles: see SUBSCRIBED of decisions.ts. */
  sessions: Map<Session, number>
  /** Its page in the calendar; Infinity if it has none. */
  calendarPage: number
}

/** A request that waits for a decision. */
export interface Waiter {
  asker: Asker
  decision: Decision
  settle: (problem: Problem | undefined) => void
  /** Its place among those that wait. */
  giveBack: () => void
}

/** Until then another gateway may not have heard of a revocation, and have asked with the revoked token. */
const REVOCATION_SPREAD_MS = 1_000

/** When to ask again where nothing says when, or the viewer's token has expired and may be renewed. */
const RETRY_MS = 1_000

interface Deps extends Pick<World, 'now' | 'wallNow'> {
  backbone: Pick<Backbone, 'authorize' | 'nodesAlive'>
}

export function createVerdicts({ backbone, now, wallNow }: Deps) {
  /**
   * The present verdict, without asking. A viewer is also admitted if the backend cannot be asked, and admitted it less than
   * twice `keep` ago.
   *
   * @returns `undefined` where the backend has to be asked
   */
  function known(decision: Decision): 'admitted' | Problem | undefined {
    const { viewer, admittedAtMs, problem, problemUntilMs, choice } = decision
    const nowMs = now()
    if (nowMs - admittedAtMs < keepMsOf(decision)) return 'admitted'
    // A token that came since may be good for more than the one that was asked with.
    if (!problem || nowMs >= problemUntilMs || hasNewToken(viewer, choice, wallNow())) return undefined
    if (isWithinGrace(decision)) return 'admitted'
    const atMs = problemUntilMs - (problem.retryAfterMs ?? 0)
    return problemNow({ problem, atMs }, nowMs)
  }

  const isWithinGrace = (decision: Decision) => now() - decision.admittedAtMs < 2 * keepMsOf(decision)

  /** @returns `undefined` where the viewer's tokens have expired */
  function ask(decision: Decision): Promise<Answer> | undefined {
    const { viewer, key, namespace, choice, payer } = decision
    const credentials = chooseCredentials(viewer, choice, wallNow())
    if (!credentials) return undefined
    // A refusal of other tokens is told to nobody while the backend is asked with this one.
    if (decision.problem?.code === 'forbidden') decision.problem = undefined
    const deadlineMs = (namespace.timeoutMs ?? 0) + ANSWER_GRACE_MS
    const { revokedAtMs } = viewer
    const { askedAgainAtMs } = decision
    const asked = { deadlineMs, maxAgeMs: maxAgeMsOf(decision), payer }
    const answer = backbone.authorize(viewerKey(key, viewer.name), credentials, asked)
    return answer.then(said => ({ said, expiresAtMs: credentials.expiresAt, revokedAtMs, askedAgainAtMs }))
  }

  /**
   * Nodes hear of no revocation. One that keeps what the backend said to a token revoked since must ask it again.
   *
   * @returns the greatest age of an answer, if that matters
   */
  function maxAgeMsOf(decision: Decision): number | undefined {
    const { viewer, askedAgainAtMs } = decision
    const sinceMs = now() - Math.max(viewer.revokedAtMs + REVOCATION_SPREAD_MS, askedAgainAtMs)
    return sinceMs < 2 * keepMsOf(decision) ? Math.max(0, sinceMs) : undefined
  }

  /**
   * Takes what came of a question.
   *
   * @param answer `undefined` where the backend was not asked
   * @returns false where it settles nothing: the backend has to be asked again
   */
  function take(decision: Decision, answer: Answer | undefined): boolean {
    const { viewer, choice } = decision
    // A token was revoked meanwhile, perhaps the one that was asked with; or the backend decides otherwise by now.
    if (answer && answer.revokedAtMs !== viewer.revokedAtMs) return false
    if (answer && answer.askedAgainAtMs !== decision.askedAgainAtMs) return false
    const nowMs = now()
    const { verdict, ageMs = Number.POSITIVE_INFINITY } = answer?.said ?? {}
    if (verdict === 'admitted') {
      decision.admittedAtMs = nowMs - ageMs
      decision.problem = undefined
    } else if (verdict === 'refused') {
      decision.admittedAtMs = Number.NEGATIVE_INFINITY
      if (noteRefused(viewer, choice, wallNow())) return false
      decision.problem = refusalOf(decision, answer?.expiresAtMs, ageMs)
      decision.problemUntilMs = nowMs + (decision.problem.retryAfterMs ?? keepRefusedMsOf(decision) - ageMs)
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
   * @param expiresAtMs of the token
   * @param ageMs the time since the refusal
   */
  function refusalOf(
    { viewer, choice }: Decision,
    expiresAtMs: number | undefined = Number.POSITIVE_INFINITY,
    ageMs: number,
  ): Problem {
    const wallNowMs = wallNow()
    if (isExpiryRefused(viewer, choice, expiresAtMs, wallNowMs - ageMs)) return tokenExpired(expiresAtMs - wallNowMs)
    return { code: 'forbidden', message: REFUSED_BY_BACKEND }
  }

  /** @param msLeft for how long it is still valid by this clock */
  function tokenExpired(msLeft = 0): Problem {
    const retryAfterMs = Math.max(RETRY_MS, msLeft)
    return { code: 'token_expired', retryAfterMs }
  }

  /** @param answer says nothing of use */
  function failureOf(answer: Answer | undefined): Problem {
    if (!answer) return tokenExpired()
    if (!answer.said) return silentFetcher(backbone.nodesAlive())
    const { message, retryAfterMs = RETRY_MS } = answer.said
    return { code: 'backend_error', message, retryAfterMs: Math.ceil(retryAfterMs) }
  }

  return { known, isWithinGrace, ask, take }
}

export function newDecision(viewer: Viewer, key: string, namespace: Deciding): Decision {
  return {
    viewer,
    key,
    namespace,
    authorize: namespace.authorize as Authorize,
    askedAgainAtMs: Number.NEGATIVE_INFINITY,
    admittedAtMs: Number.NEGATIVE_INFINITY,
    problem: undefined,
    problemUntilMs: Number.NEGATIVE_INFINITY,
    choice: newTokenChoice(),
    payer: undefined,
    isAsking: false,
    waiters: undefined,
    sessions: new Map(),
    calendarPage: Number.POSITIVE_INFINITY,
  }
}

const keepRefusedMsOf = ({ authorize }: Decision) => authorize.keepRefusedMs

export const keepMsOf = ({ authorize }: Decision) => authorize.keepMs
