// The backends' decisions whether a viewer may read a key of a namespace with `authorize`. A backend is asked once per
// viewer, key and `keep`, for all sessions and requests of the viewer; and again each `keep` while one of them is
// subscribed.
import type { Backbone } from '@keycast/backbone'
import { namespaceOf, type Problem } from '@keycast/protocol'
import {
  accountsOf,
  createCalendar,
  createPlaces,
  createRecent,
  createUniqueQueue,
  type Deciding,
  type LanePath,
  type UniqueQueue,
  type World,
  workTurn,
} from '@keycast/service'
import type { Counts } from '../../counts.ts'
import type { Asker } from '../../gate/gate.ts'
import type { Session } from '../../sessions/session.ts'
import { silentFetcher } from '../../topics/values/failure.ts'
import { createQuestionQueue } from './question-queue.ts'
import { type Answer, createVerdicts, type Decision, keepMsOf, newDecision, type Waiter } from './verdicts.ts'
import type { Viewer } from './viewers.ts'

/** The roles of a session in a key, one or both. */
export const SUBSCRIBED = 1
export const JOINED = 2

/** The reasons why a viewer is not admitted. Metrics have them at zero from the start. */
export const decisionCodes = Object.freeze([
  'forbidden',
  'backend_error',
  'fetcher_timeout',
  'fetcher_unavailable',
  'token_expired',
  'too_many_waiting',
] as const)

/** Decisions that nobody is subscribed under: at some 400 bytes each they take 8 MB. */
const IDLE_MAX = 20_000

/** Requests that wait for a decision: each account has a share. */
const WAITING_MAX = 20_000

/** Users and keys of which a backend said that it decides otherwise: at some 200 bytes each they take 2 MB. */
const TOLD_MAX = 10_000

/** Whom and what a backend decides about otherwise: a user, a key or both. `user`: with its prefix. */
export interface Change {
  user?: string
  key?: string
}

/** When to come back where there are more, or the viewer's token has expired and may be renewed. */
const RETRY_MS = 1_000

interface Deps extends Pick<World, 'now' | 'wallNow' | 'turn'> {
  /** Of values and rooms. */
  namespaces: { get: (name: string) => Deciding | undefined }
  backbone: Pick<Backbone, 'authorize' | 'nodesAlive'>
  /**
   * Of each of a decision's sessions, with its roles: it may read the key, or why not. May be called again with the same.
   */
  onDecided: (session: Session, key: string, roles: number, problem: Problem | undefined) => void
  counts: Pick<Counts, 'decisions' | 'accessRefused'>
}

export function createDecisions({ namespaces, backbone, onDecided, counts, now, wallNow, turn }: Deps) {
  const calendar = createCalendar<Decision>()
  const idle: UniqueQueue<Decision> = createUniqueQueue()
  /** Of which the backend said that it decides otherwise, and when. */
  const told = createRecent<string, number>(TOLD_MAX)
  const verdicts = createVerdicts({ backbone, now, wallNow })
  const { isWithinGrace } = verdicts
  const questions = createQuestionQueue({ ask: verdicts.ask, conclude, now, turn })
  /** The requests that wait, by who asked. */
  const waits = new Map<Asker, Set<Waiter>>()
  const places = createPlaces(WAITING_MAX)

  function open(viewer: Viewer | undefined, key: string): Decision {
    const namespace = namespaces.get(namespaceOf(key))
    // Without a viewer a door forgot to say for whom it asks.
    if (!viewer || !namespace?.authorize) throw new Error(`no viewer for ${key}, or nobody to ask`)
    const known = viewer.decisions.get(key)
    if (known) return known
    const decision = newDecision(viewer, key, namespace)
    decision.askedAgainAtMs = toldAtMs(viewer.user, key)
    viewer.decisions.set(key, decision)
    return decision
  }

  /** When the backend last said that it decides otherwise, of what a new decision is about: a node may hold what was. */
  function toldAtMs(user: string | undefined, key: string) {
    if (told.size === 0) return Number.NEGATIVE_INFINITY
    const meant: Change[] = [{ key }, { user }, { user, key }]
    return Math.max(...meant.map(each => told.get(textOf(each)) ?? Number.NEGATIVE_INFINITY))
  }

  /**
   * Whether a viewer may read a key of a namespace with `authorize`.
   *
   * @returns `undefined`: it may. Never rejects
   */
  function ask(asker: Asker, key: string): Problem | undefined | Promise<Problem | undefined> {
    const decision = open(asker.viewer, key)
    const known = verdicts.known(decision)
    if (known) {
      counts.decisions.memory++
      keepIdle(decision)
      return known === 'admitted' ? undefined : countRefusal(known)
    }
    const giveBack = places.take(asker.payer, 1)
    if (!giveBack) {
      keepIdle(decision)
      return { code: 'too_many_waiting', retryAfterMs: RETRY_MS }
    }
    return new Promise(resolve => {
      const settle = (problem: Problem | undefined) => resolve(countRefusal(problem))
      wait({ asker, decision, settle, giveBack })
      question(decision, asker)
    })
  }

  function wait(waiter: Waiter) {
    const { asker, decision } = waiter
    decision.waiters ??= new Set()
    decision.waiters.add(waiter)
    const own = waits.get(asker) ?? new Set()
    waits.set(asker, own.add(waiter))
  }

  /** @param problem why it may not read */
  function settle(waiter: Waiter, problem: Problem | undefined) {
    const { asker, decision } = waiter
    waiter.giveBack()
    decision.waiters?.delete(waiter)
    const own = waits.get(asker)
    own?.delete(waiter)
    if (own?.size === 0) waits.delete(asker)
    waiter.settle(problem)
  }

  /**
   * A session subscribes to a key of a namespace with `authorize`, or joined the room. Unless it is refused here it stays
   * with the decision until {@link unregister}, and is told by `onDecided`.
   *
   * @returns 'waits': the decision is still to come
   */
  function register(session: Session, key: string, role: number): 'admitted' | 'waits' | Problem {
    const decision = open(session.viewer, key)
    const known = verdicts.known(decision)
    if (known) counts.decisions.memory++
    if (isRefusal(known)) {
      keepIdle(decision)
      return countRefusal(known)
    }
    idle.delete(decision)
    decision.sessions.set(session, (decision.sessions.get(session) ?? 0) | role)
    if (!known) question(decision, session)
    else if (known !== 'admitted') {
      // After what answers the subscribe.
      queueMicrotask(() => {
        if (((decision.sessions.get(session) ?? 0) & role) !== 0) onDecided(session, key, role, known)
      })
    }
    schedule(decision)
    return known === 'admitted' ? known : 'waits'
  }

  function unregister(session: Session, key: string, role: number) {
    const decision = session.viewer?.decisions.get(key)
    const roles = decision?.sessions.get(session)
    if (!decision || roles === undefined) return
    if ((roles & ~role) !== 0) return void decision.sessions.set(session, roles & ~role)
    decision.sessions.delete(session)
    keepIdle(decision)
  }

  /** Keeps a decision that nobody needs now, as long as there is room. */
  function keepIdle(decision: Decision) {
    if (isWaitedFor(decision)) return
    // Somebody may go through keys faster than a backend answers. Each question left behind would be asked all the same.
    if (decision.isAsking && questions.cancel(decision)) decision.isAsking = false
    if (decision.isAsking) return
    calendar.cancel(decision)
    idle.delete(decision)
    if (!isDecided(decision)) return drop(decision)
    idle.add(decision)
    while (idle.size > IDLE_MAX) drop(idle.take() as Decision)
  }

  /** Whether the backend said anything of it. */
  const isDecided = ({ admittedAtMs, problem }: Decision) =>
    admittedAtMs > Number.NEGATIVE_INFINITY || problem !== undefined

  function drop({ viewer, key }: Decision) {
    viewer.decisions.delete(key)
  }

  /** @param asker for whom; those of one viewer take turns */
  function question(decision: Decision, asker: Asker | undefined) {
    const path = pathOf(asker)
    if (decision.isAsking) {
      counts.decisions.coalesced++
      return questions.coalesce(decision, path)
    }
    counts.decisions.asked++
    decision.isAsking = true
    decision.payer = asker?.payer
    idle.delete(decision)
    questions.add(decision, path)
  }

  /** @param answer `undefined` where the backend was not asked */
  function conclude(decision: Decision, answer: Answer | undefined) {
    decision.isAsking = false
    if (!verdicts.take(decision, answer)) {
      return isWaitedFor(decision) ? question(decision, firstSession(decision)) : keepIdle(decision)
    }
    const problem = isWithinGrace(decision) ? undefined : decision.problem
    const { waiters = [] } = decision
    decision.waiters = undefined
    for (const waiter of waiters) settle(waiter, problem)
    tellSessions(decision, problem)
    if (decision.sessions.size === 0) keepIdle(decision)
    else schedule(decision)
  }

  function tellSessions(decision: Decision, problem: Problem | undefined) {
    for (const [session, roles] of [...decision.sessions]) {
      countRefusal(problem)
      onDecided(session, decision.key, roles, problem)
    }
  }

  /** Has a decision that sessions are subscribed under checked when something has to be done. */
  function schedule(decision: Decision) {
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

  /** @param decision sessions are subscribed under it */
  function check(decision: Decision) {
    if (!isWithinGrace(decision)) {
      const { problem } = decision
      tellSessions(decision, problem ?? silentFetcher(backbone.nodesAlive()))
    }
    if (decision.sessions.size === 0) return
    if (!verdicts.known(decision)) question(decision, firstSession(decision))
    schedule(decision)
  }

  /** @returns whether there was one */
  function checkNext(): boolean {
    const due = calendar.takeDue(now())
    if (due) check(due)
    return due !== undefined
  }

  /**
   * The backend may decide otherwise by now: it is asked again.
   *
   * @param isMeant given a key
   * @param mayStay whether who is there stays until it says no
   * @returns how many decisions that were
   */
  function askAgain(viewers: Iterable<Viewer>, isMeant: (key: string) => boolean, mayStay = true): number {
    const meant = Array.from(viewers, ({ decisions }) =>
      [...decisions.values()].filter(({ key }) => isMeant(key)),
    ).flat()
    for (const decision of meant) {
      decision.askedAgainAtMs = now()
      decision.authorize = decision.namespace.authorize ?? decision.authorize
      unsettle(decision, mayStay)
    }
    return meant.length
  }

  /** What was said counts no more: where the backend fails from now on, it admits nobody but those who are there. */
  function unsettle(decision: Decision, mayStay: boolean) {
    const untilMs = mayStay && isSomebodyThere(decision) ? now() - keepMsOf(decision) : Number.NEGATIVE_INFINITY
    decision.admittedAtMs = Math.min(decision.admittedAtMs, untilMs)
    decision.problemUntilMs = Number.NEGATIVE_INFINITY
    if (idle.delete(decision)) drop(decision)
    else if (decision.sessions.size > 0) calendar.schedule(decision, now())
  }

  function countRefusal<P extends Problem | undefined>(problem: P): P {
    if (isRefusal(problem)) counts.accessRefused.forbidden++
    return problem
  }

  /** The backend's no to an asker that was admitted a while ago, if it has said so since. */
  function refusal({ viewer }: Asker, key: string): Problem | undefined {
    const decision = viewer?.decisions.get(key)
    const known = decision && verdicts.known(decision)
    return isRefusal(known) ? countRefusal(known) : undefined
  }

  return {
    ask,
    refusal,
    register,
    unregister,

    /** The asker is gone: none of its requests waits any more. Nobody is asked what nobody waits for. */
    giveUp(asker: Asker) {
      for (const waiter of waits.get(asker) ?? []) {
        settle(waiter, gone)
        keepIdle(waiter.decision)
      }
    },

    /** A viewer is not known any more, or its tokens were revoked: what was decided for it does not hold. */
    forget(viewer: Viewer) {
      for (const decision of viewer.decisions.values()) unsettle(decision, true)
    },

    askAgain,

    /** The backend says that it decides otherwise. @param viewers those of the user, or all @returns as `askAgain` */
    changed(change: Change, viewers: Iterable<Viewer>): number {
      told.set(textOf(change), now())
      return askAgain(viewers, key => change.key === undefined || key === change.key)
    },

    /** Asks again where that is due. */
    sweep() {
      // The next sweep checks those for which this turn has no room.
      workTurn(now, checkNext)
    },
  }
}

/** Whether the backend said no. */
const isRefusal = (known: 'admitted' | Problem | undefined): known is Problem =>
  typeof known === 'object' && known.code === 'forbidden'

const textOf = ({ user, key }: Change) => JSON.stringify([user, key])

/** One whom nobody can charge stands for itself. */
const pathOf = (asker: Asker | undefined): LanePath => (asker?.payer === undefined ? [asker] : accountsOf(asker.payer))

const firstSession = ({ sessions }: Decision): Session | undefined => sessions.keys().next().value

function isSomebodyThere({ sessions }: Decision) {
  for (const { ended } of sessions.keys()) if (!ended) return true
  return false
}

const isWaitedFor = ({ sessions, waiters }: Decision) => sessions.size > 0 || (waiters?.size ?? 0) > 0

/** Nobody is told: the session is gone. */
const gone: Problem = { code: 'too_many_waiting', message: 'the session ended' }
