// A room as one gateway has it: how far its stream has come, its newest messages, and the sessions that follow it.
import type { GapReason, Message } from '@keycast/backbone'
import { createMessageHeads, type RoomStart } from '@keycast/protocol'
import type { JournalNamespace } from '@keycast/service'
import type { MembersWatch } from '../presence/member-list.ts'
import type { Session } from '../sessions/session.ts'
import type { Announcement } from './announcement.ts'
import type { HeldAnswer } from './held-answers.ts'
import type { Page } from './pages.ts'

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

export interface Room {
  key: string
  namespace: JournalNamespace
  /** `undefined` until the journal has said where the room stands. */
  epoch: string | undefined
  /** Seq of the last message that came. */
  reached: number
  /** Seq of the first message that the journal still holds, as last heard: a stream begins no earlier. */
  oldest: number
  /** Seq of the first message that may be written: `oldest` of a moment ago. This and the next two: tails.ts. */
  floor: number
  /** The tail, without a hole up to `reached`. */
  segments: Segment[]
  /** Read from the journal for sessions that are behind the tail. */
  pages: Segment[]
  headOf: ReturnType<typeof createMessageHeads>
  /** By the seq after which they read; pages.ts. */
  reads: Map<number, Promise<Page>>
  subscriptions: RoomSubscription[]
}

/** One session's place in one room: a number in place of a queue. */
export interface RoomSubscription {
  session: Session
  room: Room
  /** In the room's list. */
  index: number
  /** MESSAGES of due.ts where it stands in its session's `due`, else 0. */
  due: number
  /** Seq up to which the session was sent the room. */
  cursor: number
  /** Until the client was told where its stream begins. */
  placing: Placing | undefined
  /** Whether a page of the history is read for it. */
  isBehind: boolean
  /** Set if the client is told of the members. */
  members: MembersWatch | undefined
  /** A gap that the client must be told of before anything else. */
  gap: GapReason | undefined
  /** To its publishes that wait for the message to go first. */
  answers: HeldAnswer[] | undefined
}

export interface Placing {
  /** The client's request. */
  start: RoomStart | undefined
  announcement: Announcement
  /** Whether its place is known, and waits to be said. */
  isPlaced: boolean
  /** Whether every message after the position that the client named follows. */
  isRecovered: boolean
  isReading: boolean
  /** Whether the client was told that it takes a while. */
  isTold: boolean
}

/** Shared by all rooms without one. Never pushed to. */
export const NONE = Object.freeze([]) as unknown as any[]

export function createRoom(key: string, namespace: JournalNamespace): Room {
  return {
    key,
    namespace,
    epoch: undefined,
    reached: 0,
    oldest: 1,
    floor: 1,
    segments: [],
    pages: NONE,
    headOf: createMessageHeads(key),
    reads: new Map(),
    subscriptions: [],
  }
}
