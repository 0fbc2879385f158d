// A topic is what one key names at this gateway: a value or a room. Sessions subscribe to topics while the gate lets them.
// The difference between values and rooms is in their kinds, which have the methods: there may be a million topics. A
// subscription whose backend cannot be asked waits, and goes on where it stood once the gate admits it again.
import {
  type ControlMessage,
  type ErrorCode,
  type ErrorMessage,
  errorMessage,
  isProblem,
  namespaceOf,
  type Problem,
  type RequestId,
  type Wanted,
} from '@keycast/protocol'
import { addIndexed, type JournalNamespace, type JournalNamespaces, type Payer, removeIndexed } from '@keycast/service'
import type { Rights } from '../access/rights.ts'
import type { Counts } from '../counts.ts'
import type { Act, Admitted, Holder, Lasting } from '../gate/gate.ts'
import type { Session } from '../sessions/session.ts'
import type { Piece } from '../transport/transport.ts'

export interface Topic {
  readonly kind: Kind
  readonly key: string
  /** While there are any, the key is watched. */
  subscriptions: Subscription[]
}

/** One session's interest in one topic. There may be millions, so it is small. */
export interface Subscription {
  readonly session: Session
  readonly topic: Topic
  /** In the topic's list; -1 once it has ended. */
  index: number
  /**
   * What is to be written to the session: 0 for nothing, else bits of the topic's kind, among them perhaps
   * {@link PARKED}. While it is above 0 the subscription stands in its session's `due`.
   */
  due: number
}

/** Beside the bits of a kind, which makes `due` negative: nothing is written until the outbox is told to resume it. */
export const PARKED = 1 << 31

/** How a client asked for a key: with the version it holds of a value, or where the stream of a room is to begin. */
export type Start = Omit<Wanted, 'key'> & {
  /** Of the request, where the beginning of the stream answers it. */
  id?: RequestId
  /** The gateway paused the stream of a room, and goes on there: no right to the history is needed. */
  isPaused?: boolean
}

export interface Kind {
  /** `waiting`: the session has to be admitted before anything is told. */
  readonly name: 'value' | 'room' | 'waiting'
  /**
   * Subscribes a session to a topic, and tells the state as `start` says. The first subscription watches the key.
   */
  join(session: Session, topic: Topic, start: Start): void
  /** Tells the state anew: the client subscribed again. */
  begin(subscription: Subscription, start: Start): void
  /** With it another subscription goes on where this one stands. */
  position(subscription: Subscription): Start
  /**
   * Appends what is due to the subscription, some `bytesMax` of it, and leaves in `due` what still is.
   *
   * @returns bytes added
   */
  write(subscription: Subscription, pieces: Piece[], bytesMax: number, nowMs: number): number
  /** Ends the subscription: nothing of the key is written after. */
  end(subscription: Subscription): void
}

/** A key that a session waits to be admitted to: a topic that it alone has. */
interface WaitingSubscription extends Subscription {
  start: Start
  /** Of the failure that the client was told. */
  toldCode: ErrorCode | undefined
}

/** Subscriptions of a session that are ended before others have their turn: each takes some microseconds. */
const DROPPED_AT_ONCE = 100

interface Deps {
  readonly gate: {
    hold(session: Session, act: Lasting, key: string): Admitted | Problem | 'waits'
    grants(rights: Rights, act: Act, key: string): boolean
    release(session: Session, act: Lasting, key: string): void
  }
  readonly openValue: (wireKey: string, payer: Payer | undefined) => Topic | Problem
  readonly namespaces: JournalNamespaces
  readonly rooms: { open(session: Session, key: string, namespace: JournalNamespace): Topic | Problem }
  readonly outbox: { send(session: Session, message: ControlMessage): void }
  readonly counts: Pick<Counts, 'asked' | 'pageReads'>
}

export function createTopics({ namespaces, gate, openValue, rooms, outbox, counts }: Deps) {
  let awaiting = 0

  const waiting: Kind = {
    name: 'waiting',
    join(session, topic, start) {
      awaiting++
      counts.asked++
      const subscription: WaitingSubscription = { session, topic, index: 0, due: 0, start, toldCode: undefined }
      attach(subscription)
    },
    begin(subscription: WaitingSubscription, start) {
      subscription.start = start
      subscription.toldCode = undefined
    },
    position: ({ start }: WaitingSubscription) => start,
    write: () => 0,
    end(subscription) {
      awaiting--
      detach(subscription)
    },
  }

  const wait = (session: Session, key: string, start: Start) =>
    waiting.join(session, { kind: waiting, key, subscriptions: [] }, start)

  function find(session: Session, key: string): WaitingSubscription | undefined {
    const subscription = session.subscriptions.get(key)
    return subscription?.topic.kind === waiting ? (subscription as WaitingSubscription) : undefined
  }

  /**
   * Subscribes a session to a key, now or once the gate admits it. One that is subscribed is told the state anew.
   *
   * @param key as a client sent it
   * @param id of the request, which the beginning of a room's stream answers
   * @returns what it is subscribed to, or why it was not subscribed
   */
  function subscribe(session: Session, key: string, wanted: Start, id?: RequestId): 'value' | 'room' | Problem {
    const held = gate.hold(session, 'subscribe', key)
    if (held !== 'waits' && isProblem(held)) return held
    const namespace = held === 'waits' ? namespaces.get(namespaceOf(key)) : held.namespace
    const of = namespace?.source === 'journal' ? 'room' : 'value'
    const start = of === 'room' ? startOf(session, key, wanted, id) : wanted
    const subscription = session.subscriptions.get(key)
    if (subscription) subscription.topic.kind.begin(subscription, start)
    else if (held === 'waits') wait(session, key, start)
    else return join(session, held, start) ?? of
    return of
  }

  /** Where the stream of a room begins. For a session that may not read what was before: now. */
  function startOf(session: Session, key: string, wanted: Start, id: RequestId | undefined): Start {
    const { after, last } = wanted
    const isAllowed = (after === undefined && last === undefined) || gate.grants(session.rights, 'history', key)
    return isAllowed ? { ...wanted, id } : { ...wanted, id, after: undefined, last: undefined }
  }

  /** @param admitted to a key that the session holds */
  function join(session: Session, { key, wireKey, namespace }: Admitted, start: Start): Problem | undefined {
    const topic =
      namespace?.source === 'journal' ? rooms.open(session, key, namespace) : openValue(wireKey, session.payer)
    if (isProblem(topic)) {
      gate.release(session, 'subscribe', key)
      return topic
    }
    topic.kind.join(session, topic, start)
    if (topic.subscriptions.length === 1) counts.asked++
    return undefined
  }

  /** Ends a session's subscription to a key, if it has one: nothing of the key is written after. */
  function unsubscribe(session: Session, key: string) {
    const subscription = session.subscriptions.get(key)
    if (!subscription) return
    subscription.topic.kind.end(subscription)
    gate.release(session, 'subscribe', key)
  }

  /** The session is admitted. */
  function admitted(session: Session, admission: Admitted) {
    const { key } = admission
    const subscription = find(session, key)
    if (!subscription) return
    waiting.end(subscription)
    const full = join(session, admission, subscription.start)
    if (full) tell(session, key, full, unansweredId(subscription))
  }

  function pause(session: Session, key: string) {
    const subscription = session.subscriptions.get(key)
    if (!subscription || find(session, key)) return
    const { kind } = subscription.topic
    const start = kind.position(subscription)
    kind.end(subscription)
    wait(session, key, start)
  }

  /** The session waits from now on, and is told why, once. */
  function suspend(session: Session, key: string, problem: Problem) {
    pause(session, key)
    const subscription = find(session, key)
    if (!subscription || subscription.toldCode === problem.code) return
    const id = unansweredId(subscription)
    subscription.toldCode = problem.code
    tell(session, key, problem, id)
  }

  function refuse(session: Session, key: string, problem: Problem) {
    const id = unansweredId(find(session, key))
    unsubscribe(session, key)
    tell(session, key, problem, id)
  }

  function tell(session: Session, key: string, problem: Problem, id?: RequestId) {
    outbox.send(session, errorAbout(session, key, problem, id))
  }

  const holder: Holder = {
    keysOf: ({ subscriptions }) => [...subscriptions.keys()],
    stateOf(session, key) {
      const subscription = session.subscriptions.get(key)
      return subscription && (subscription.topic.kind === waiting ? 'waits' : 'stands')
    },
    pause,
    decided(session, key, outcome) {
      if (!isProblem(outcome)) admitted(session, outcome)
      else if (outcome.retryAfterMs === undefined) refuse(session, key, outcome)
      else suspend(session, key, outcome)
    },
  }

  return {
    subscribe,
    unsubscribe,
    holder,

    /** How often a subscription needed a question to the fetcher, a backend or the journal, ever. */
    asked: () => counts.asked + counts.pageReads,

    /**
     * Ends subscriptions of a session that ended: so many that others do not wait for it.
     *
     * @returns whether there are more
     */
    dropSome(session: Session): boolean {
      let dropped = 0
      for (const key of session.subscriptions.keys()) {
        if (dropped++ === DROPPED_AT_ONCE) return true
        unsubscribe(session, key)
      }
      return false
    },

    stats: () => ({ awaiting }),
  }
}

/** The id of the request, where neither an error nor the beginning of a stream has answered it. */
const unansweredId = (subscription: WaitingSubscription | undefined) =>
  subscription?.toldCode === undefined ? subscription?.start.id : undefined

/** The start of a client that holds nothing. */
export const FROM_NOTHING: Start = Object.freeze({ version: undefined })

/**
 * The error about a key. It says whether the session is subscribed to it by now: the request that failed may have been
 * another one, and the subscription stands.
 */
export const errorAbout = (
  { subscriptions }: Pick<Session, 'subscriptions'>,
  key: string,
  problem: Problem,
  id?: RequestId,
): ErrorMessage => errorMessage(problem, { id, key, subscribed: subscriptions.has(key) })

/** Puts a subscription on the lists of its topic and of its session. */
export function attach(subscription: Subscription) {
  const { session, topic } = subscription
  addIndexed(topic.subscriptions, subscription)
  // The topic's own string: that of the request would be in memory once per session.
  session.subscriptions.set(topic.key, subscription)
}

export function detach(subscription: Subscription) {
  const { session, topic } = subscription
  session.subscriptions.delete(topic.key)
  removeIndexed(topic.subscriptions, subscription)
  subscription.index = -1
}
