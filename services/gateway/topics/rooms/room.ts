// A room as one gateway has it: how far its stream has come, its newest messages, and the sessions that follow it.
import type { GapReason, Message } from '@keycast/backbone'
import { createMessageHeads } from '@keycast/protocol'
import type { JournalNamespace } from '@keycast/service'
import type { Session } from '../../sessions/session.ts'
import type { Kind, Start, Subscription, Topic } from '../topics.ts'
import type { Page } from './catch-up-reads.ts'
import type { HeldAnswer } from './held-answers.ts'
import type { MemberList } from './presence/member-list.ts'
import type { Place } from './room-places.ts'

/** Messages that follow each other: as they came, until a session wants them; then as the frames that all are sent. */
export interface Segment {
  /** Seq of its first message. */
  first: number
  last: number
  messages: Message[]
  frames: Buffer | undefined
  /** The end of each message's frame. */
  ends: number[]
  /** The memory that it counts for. */
  bytes: number
  /** When the first of them came. */
  receivedAtMs: number
}

export interface Room extends Topic {
  namespace: JournalNamespace
  /** `undefined` until the journal has said where the room stands. */
  epoch: string | undefined
  /** Seq of the last message that came. */
  reached: number
  /** Seq of the first message that the journal still holds, as last heard: a stream begins no earlier. */
  oldest: number
  /** Seq of the first message that may be written: `oldest` of a moment ago. This and the next two: tails.ts. */
  floor: number
  /** How often messages of it were deleted: what was read before may have them. */
  deletions: number
  /** The tail, without a hole up to `reached`. */
  segments: Segment[]
  /** Read from the journal for sessions that are behind the tail. */
  pages: Segment[]
  headOf: ReturnType<typeof createMessageHeads>
  /** When so many of the last messages were read, those after the cursor came; stream-start.ts. */
  lastRead: { count: number; cursor: number } | undefined
  /** By the seq after which they read; catch-up-reads.ts. */
  reads: Map<number, { epoch: string | undefined; reading: Promise<Page> }>
  subscriptions: RoomSubscription[]
  /** Whom it counts for, while it has any. */
  place: Place | undefined
}

/** Bits of what a session is due of a room: what follows its cursor, or how it begins; all members. */
export const MESSAGES = 1
export const MEMBERS = 2

/** One session's place in one room: a number in place of a queue. */
export interface RoomSubscription extends Subscription {
  readonly topic: Room
  /** Seq up to which the session was sent the room. */
  cursor: number
  /** Until the client was told where its stream begins. */
  placing: Placing | undefined
  /** That for which the history is read, perhaps an earlier one. */
  reading: Placing | undefined
  /** Whether a page of the history is read for it. */
  isBehind: boolean
  /** Set if the client is told of the members, with its index in their list. */
  members: { list: MemberList; index: number } | undefined
  /** A gap that the client must be told of before anything else. */
  gap: GapReason | undefined
  /** To its publishes that wait for the message to go first. */
  answers: HeldAnswer[] | undefined
}

export interface Placing {
  /** As the client asked. */
  start: Start
  /** Seq of the room's head when the place was found: that is due then. `undefined` until it is found. */
  head: number | undefined
  /** Whether every message after the position that the client named follows. */
  isRecovered: boolean
  /** Whether the client was told that it takes a while. */
  isTold: boolean
}

/** Shared by all rooms without one. Never pushed to. */
export const NONE = Object.freeze([]) as unknown as never[]

export function createRoom(key: string, namespace: JournalNamespace, kind: Kind): Room {
  return {
    kind,
    key,
    namespace,
    epoch: undefined,
    reached: 0,
    oldest: 1,
    floor: 1,
    deletions: 0,
    segments: [],
    pages: NONE,
    headOf: createMessageHeads(key),
    lastRead: undefined,
    reads: new Map(),
    subscriptions: [],
    place: undefined,
  }
}

/** A session's subscription to a room, unless it waits to be admitted. */
export function subscriptionTo({ subscriptions }: Pick<Session, 'subscriptions'>, key: string) {
  const subscription = subscriptions.get(key)
  return subscription?.topic.kind.name === 'room' ? (subscription as RoomSubscription) : undefined
}
