// The one place that decides what may be done with a key. Every door comes here before it does anything with a key that
// was sent to it: get, history, publish, join and subscribe, GET /v1/values, GET /v1/messages, and the operator's calls. A
// key that is cached is no exception.
import { viewerKey } from '@keycast/backbone'
import { excerpt, idOf, isProblem, keyProblem, namespaceOf, type Problem } from '@keycast/protocol'
import { type AnyNamespace, idProblem, type JournalNamespace, type Named, roomIdProblem } from '@keycast/service'
import { JOINED, SUBSCRIBED } from '../access/backend/decisions.ts'
import type { Viewer } from '../access/backend/viewers.ts'
import { decide, type Rights } from '../access/rights.ts'
import type { Verb } from '../access/rule.ts'
import { countOne } from '../counts.ts'
import type { Account } from '../sessions/accounts.ts'
import type { Session } from '../sessions/session.ts'

/** What is done with a key. */
export type Act = 'get' | 'subscribe' | 'history' | 'members' | 'publish' | 'join'

/** An act that goes on until it is released. */
export type Lasting = 'subscribe' | 'join'

/** For whom a door asks: a session, or the sender of an HTTP request. */
export interface Asker {
  readonly rights: Rights
  readonly viewer: Viewer | undefined
  readonly account: Account | undefined
  /** Whom nodes and journals charge. */
  readonly payer: Session['payer']
  /** Of an HTTP request: its token was revoked while it waited. A session ends when its token is revoked. */
  readonly revoked?: () => Problem | undefined
}

/** A key that an asker may use, with what was looked up for that. Valid until the asker waits for something. */
export interface Admitted {
  readonly asker: Asker
  readonly act: Act
  readonly key: string
  /** The key under which the asker's value is stored and asked for. */
  readonly wireKey: string
  readonly rights: Rights
  /** The rights as they were then. */
  readonly grants: Rights['grants']
  readonly viewer: Viewer | undefined
  /** `undefined` where keycast.yaml has it no more. */
  readonly namespace: AnyNamespace | undefined
  /** Who decided then, of its namespace, which keycast.yaml may change. */
  readonly authorize: AnyNamespace['authorize']
}

/** Keeps what was asked for with the keys that sessions hold. */
export interface Holder {
  keysOf(session: Session): string[]
  /** Whether a held key waits for a backend. */
  stateOf(session: Session, key: string): 'waits' | 'stands' | undefined
  /** Somebody else reads from now on: nothing is told until `decided` is called. */
  pause(session: Session, key: string): void
  /**
   * The backend decided, perhaps the same as before; or the session's rights changed. A refusal with `retryAfterMs` says
   * that the backend cannot be asked, and the key stays held. After any other refusal the holder releases it.
   */
  decided(session: Session, key: string, outcome: Admitted | Problem): void
}

/** Tells sessions the members of rooms that they are subscribed to. */
export type Watcher = Pick<Holder, 'keysOf' | 'decided'>

interface Deps {
  readonly namespaces: Named<AnyNamespace>
  readonly decisions: {
    ask(asker: Asker, key: string): Problem | undefined | Promise<Problem | undefined>
    refusal(asker: Asker, key: string): Problem | undefined
    register(session: Session, key: string, role: number): 'admitted' | 'waits' | Problem
    unregister(session: Session, key: string, role: number): void
    giveUp(asker: Asker): void
  }
  readonly quota: {
    take(session: Session, act: Lasting): Problem | undefined
    giveBack(session: Session, act: Lasting): void
  }
  readonly counts: { readonly accessRefused: { unauthenticated: number; forbidden: number } }
}

const verbOf: Readonly<Record<Act, Verb>> = {
  get: 'read',
  subscribe: 'read',
  history: 'history',
  members: 'members',
  publish: 'publish',
  join: 'join',
}

/** As which a session is known to the decisions about a key. */
const roleOf: Readonly<Record<Lasting, number>> = { subscribe: SUBSCRIBED, join: JOINED }

type Of = 'value' | 'room'

/** What an act is done with. A subscribe takes what the key is of. */
const objectOf: Readonly<Record<Act, Of | undefined>> = {
  get: 'value',
  subscribe: undefined,
  history: 'room',
  members: 'room',
  publish: 'room',
  join: 'room',
}

const noValues: Problem = {
  code: 'unknown_namespace',
  message: 'no values here, this namespace is of rooms: subscribe to the key, or ask for its history',
}

const noRooms: Problem = {
  code: 'unknown_namespace',
  message: 'no rooms here, this namespace is of values: they are read, and nobody publishes there',
}

/** Whether each user has a value of their own. */
const isOwn = (namespace: AnyNamespace | undefined) => namespace?.source === 'http' && namespace.isPerUser === true

/** @param key keeps the grammar */
const noNamespace = (key: string) => `no namespace ${excerpt(namespaceOf(key))} here: ask the operator which exist`

const LASTING = ['subscribe', 'join'] as const satisfies Lasting[]

const NONE: ReadonlySet<string> = new Set()

/** Of requests that wait for a key: they are everybody's, so no backend can be asked for whom. */
export const notForAll: Problem = {
  code: 'forbidden',
  message: 'only keys that everybody may read can be waited for: none with authorize, per: user or no-store',
}

/** Of a request over HTTP that another backend is to be asked about by now. */
export const askedOtherwise: Problem = {
  code: 'too_many_waiting',
  message: 'keycast.yaml changed while the request waited: send it again',
  retryAfterMs: 100,
}

/** A client repeats a publish that its session's change of user overtook after this time. */
const RETRY_MS = 100

export function createGate({ namespaces, decisions, quota, counts }: Deps) {
  let holders: Readonly<Record<Lasting, Holder> & { members: Watcher }>

  /**
   * Admits once. Waits only where a backend decides who reads the key and has to be asked.
   *
   * @param key anything a client sent
   * @returns never rejects
   */
  function enter(asker: Asker, act: Act, key: string): Admitted | Problem | Promise<Admitted | Problem> {
    const namespace = find(asker.rights, act, key)
    if (isProblem(namespace)) return namespace
    // Before anything is looked up: neither the answer nor its time tells whether a key exists that the viewer may not read.
    const decision = namespace.authorize ? decisions.ask(asker, key) : undefined
    if (decision instanceof Promise) return enterDecided(asker, act, key, decision)
    return decision ?? admit(asker, act, key, namespace)
  }

  function admit(asker: Asker, act: Act, key: string, namespace: AnyNamespace | undefined): Admitted {
    const { rights, viewer } = asker
    const wireKey = isOwn(namespace) ? ownKeyOf(viewer, key) : key
    return {
      asker,
      act,
      key,
      wireKey,
      rights,
      grants: rights.grants,
      viewer,
      namespace,
      authorize: namespace?.authorize,
    }
  }

  async function enterDecided(asker: Asker, act: Act, key: string, decision: Promise<Problem | undefined>) {
    const { viewer } = asker
    const problem = await decision
    if (asker.viewer === viewer && problem) return problem
    // Else one user's message would be published in the name of another.
    if (asker.viewer !== viewer && act === 'publish') return otherUser
    // Asked anew: the rights may be others by now. For the same viewer the decision stands.
    return enter(asker, act, key)
  }

  /**
   * Must follow every wait after {@link enter}: the asker's rights, viewer and token may be others by now.
   *
   * @returns 'again': the asker is another viewer by now, or another backend decides, so the key has to be entered anew
   */
  function recheck({ asker, act, key, grants, viewer, authorize }: Admitted): Problem | 'again' | undefined {
    const revoked = asker.revoked?.()
    if (revoked) return revoked
    if (asker.viewer !== viewer && isViewers(key)) return 'again'
    if (namespaceFor(key)?.authorize !== authorize) return 'again'
    const problem = asker.rights.grants === grants ? undefined : check(asker.rights, act, key)
    return problem ?? (authorize && decisions.refusal(asker, key))
  }

  /**
   * Admits a session for as long as it wants: until {@link release}. The holder is told by `decided` of all that changes.
   * A key that is held already takes no second place; a subscription to it goes on, a join is decided about anew.
   *
   * @param key anything a client sent
   * @returns 'waits': a backend decides. The key is held from now on, unless it is refused here
   */
  function hold(session: Session, act: Lasting, key: string): Admitted | Problem | 'waits' {
    const namespace = find(session.rights, act, key)
    if (isProblem(namespace)) return namespace
    const state = holders[act].stateOf(session, key)
    if (state === 'waits') return state
    if (state === 'stands' && act === 'subscribe') return admit(session, act, key, namespace)
    const full = state ? undefined : quota.take(session, act)
    if (full) return full
    const outcome = askToHold(session, act, key, namespace)
    if (!state && outcome !== 'waits' && isProblem(outcome)) quota.giveBack(session, act)
    return outcome
  }

  /** @param key that the session's rights cover */
  function askToHold(session: Session, act: Lasting, key: string, namespace: AnyNamespace | undefined) {
    if (!namespace?.authorize) return admit(session, act, key, namespace)
    if (!session.viewer) return notForAll
    const verdict = decisions.register(session, key, roleOf[act])
    return verdict === 'admitted' ? admit(session, act, key, namespace) : verdict
  }

  /** @param key that the session holds */
  function release(session: Session, act: Lasting, key: string) {
    quota.giveBack(session, act)
    forgo(session, act, key)
  }

  function forgo(session: Session, act: Lasting, key: string) {
    decisions.unregister(session, key, roleOf[act])
  }

  /**
   * A backend decided about a key that a session holds.
   *
   * @param roles as which it is held
   * @param problem why the session may not read the key now
   */
  function decided(session: Session, key: string, roles: number, problem: Problem | undefined) {
    for (const act of LASTING) {
      if ((roles & roleOf[act]) === 0) continue
      holders[act].decided(session, key, problem ?? readmit(session, act, key))
    }
  }

  /** Since the backend was asked, keycast.yaml may have changed: its namespace may be gone. */
  function readmit(session: Session, act: Lasting, key: string): Admitted | Problem {
    const namespace = find(session.rights, act, key)
    return isProblem(namespace) ? namespace : admit(session, act, key, namespace)
  }

  /**
   * The session has other rights, or keycast.yaml changed: what it may not do any more ends, and keys that a backend decides
   * about from now on wait for its word.
   *
   * @param decided namespaces where a backend decides who reads, and did not, or the other way round
   */
  function reconsider(session: Session, decided: ReadonlySet<string> = NONE) {
    for (const act of ['members', ...LASTING] as const) {
      for (const key of holders[act].keysOf(session)) {
        const problem = check(session.rights, act, key)
        if (problem) holders[act].decided(session, key, problem)
      }
    }
    if (decided.size > 0) askAnew(session, key => decided.has(namespaceOf(key)))
  }

  /**
   * The session has another viewer. Decisions for the viewer before say nothing, and that viewer's own values are not
   * this one's.
   *
   * @param change sets the new viewer
   */
  function changeViewer(session: Session, change: () => void) {
    // Also where no backend decides any more: the session would stay registered for the viewer before.
    for (const [act, key] of heldBy(session)) forgo(session, act, key)
    askAnew(session, isViewers, change)
  }

  /** @param change after which the keys are asked for anew */
  function askAnew(session: Session, isMeant: (key: string) => boolean, change = () => {}) {
    const held = heldBy(session).filter(([, key]) => isMeant(key))
    for (const [act, key] of held) {
      holders[act].pause(session, key)
      forgo(session, act, key)
    }
    change()
    for (const [act, key] of held) {
      const outcome = askToHold(session, act, key, namespaceFor(key))
      if (outcome !== 'waits') holders[act].decided(session, key, outcome)
    }
  }

  const heldBy = (session: Session) =>
    LASTING.flatMap(act => holders[act].keysOf(session).map(key => [act, key] as const))

  /** Whether keys of its namespace may carry a query. @param key that may be used */
  function takesQuery(key: string) {
    const namespace = namespaceFor(key)
    return namespace !== undefined && namespace.source !== 'journal' && namespace.query !== undefined
  }

  const namespaceFor = (key: string) => namespaces.get(namespaceOf(key))

  /** Whether it matters to a key which viewer asks: a backend decides who reads it, or each has a value of their own. */
  function isViewers(key: string) {
    const namespace = namespaceFor(key)
    return isOwn(namespace) || namespace?.authorize !== undefined
  }

  /** The key under which a viewer's own value is stored and asked for. */
  function ownKeyOf(viewer: Viewer | undefined, key: string) {
    // No viewer: the caller forgot to say for whom it asks.
    if (!viewer) throw new Error(`no viewer for ${key}`)
    return viewerKey(key, viewer.name)
  }

  /** As {@link find}, of which only the problem is wanted. */
  function check(rights: Rights, act: Act, key: string): Problem | undefined {
    const found = find(rights, act, key)
    return isProblem(found) ? found : undefined
  }

  /**
   * The namespace of a key; or the reason why rights do not cover the key, or why nobody does that with it. The rights come
   * before the namespace: neither the answer nor its time tells whether a forbidden key exists. Whatever follows takes the
   * namespace from here, as clients that come back resume thousands of keys at once.
   *
   * @param key anything a client sent
   */
  function find(rights: Rights, act: Act, key: string): AnyNamespace | Problem {
    const problem = grammarProblem(key)
    if (problem) return problem
    const refusal = decide(rights, verbOf[act], key)
    if (!refusal) return fit(namespaceFor(key), objectOf[act], key, act)
    countOne(counts.accessRefused, refusal.code)
    return refusal
  }

  /**
   * Whether rights grant an act, where a request does without it.
   *
   * @param key that was admitted to another act
   */
  const grants = (rights: Rights, act: Act, key: string) => decide(rights, verbOf[act], key) === undefined

  /**
   * The reason why a key is none, or not of the sort that is wanted; for the backend and the operator, whom no rights bound.
   *
   * @param of any sort unless given
   * @param key anything they sent
   */
  function operator(of: Of | undefined, key: string): Problem | undefined {
    const problem = grammarProblem(key)
    if (problem) return problem
    const found = fit(namespaceFor(key), of, key)
    return isProblem(found) ? found : undefined
  }

  function grammarProblem(key: string): Problem | undefined {
    const message = keyProblem(key)
    return message === undefined ? undefined : { code: 'bad_key', message }
  }

  /** @param key keeps the grammar */
  function fit(
    namespace: AnyNamespace | undefined,
    of: Of | undefined,
    key: string,
    act?: Act,
  ): AnyNamespace | Problem {
    if (!namespace) return { code: 'unknown_namespace', message: noNamespace(key) }
    if (namespace.source !== 'journal') {
      return of === 'room' ? noRooms : (badKey(idProblem(namespace, idOf(key))) ?? namespace)
    }
    if (of === 'value') return noValues
    return badKey(roomIdProblem(idOf(key))) ?? actProblem(namespace, act) ?? namespace
  }

  /** What a room's namespace lets no client do. */
  function actProblem({ publish, members }: JournalNamespace, act: Act | undefined): Problem | undefined {
    if (act === 'publish' && publish !== 'client')
      return { code: 'forbidden', message: 'only the server publishes here' }
    if (act === 'join' && members === 'none') return { code: 'forbidden', message: 'nobody joins this room' }
    if (act === 'members' && members === 'none')
      return { code: 'forbidden', message: 'nobody is told who is in this room' }
    return undefined
  }

  const badKey = (message: string | undefined): Problem | undefined =>
    message === undefined ? undefined : { code: 'bad_key', message }

  return {
    enter,
    recheck,
    hold,
    release,
    decided,
    reconsider,
    changeViewer,
    check,
    grants,
    isViewers,
    takesQuery,
    operator,

    /** The session is gone, and none of its requests waits any more. Its holders release what it holds. */
    giveUp: decisions.giveUp,

    /** Before the first `hold`. */
    start(given: typeof holders) {
      holders = given
    },
  }
}

const otherUser: Problem = {
  code: 'too_many_waiting',
  message: 'the session ended, or has another user, since the message came',
  retryAfterMs: RETRY_MS,
}
