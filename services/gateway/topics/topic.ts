// A topic is what one key names at this gateway: a value or a room. Sessions subscribe to topics. What differs between
// values and rooms is in their kinds, which have the methods: there may be a million topics.
import type { RequestId, Wanted } from '@keycast/protocol'
import { addIndexed, removeIndexed } from '@keycast/service'
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

/** The start of a client that holds nothing. */
export const FROM_NOTHING: Start = Object.freeze({ version: undefined })

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
