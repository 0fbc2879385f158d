// A room as one gateway has it: how far its stream has come, its newest messages, and the sessions that follow it.
import { createMessageHeads } from '@keycast/protocol'

/**
 * @typedef {import('@keycast/backbone').Message} Message
 * @typedef {import('@keycast/backbone').GapReason} GapReason
 * @typedef {import('@keycast/protocol').RoomStart} RoomStart
 * @typedef {import('@keycast/service').JournalNamespace} JournalNamespace
 * @typedef {import('../sessions/session.ts').Session} Session
 *
 * Messages that follow each other, encoded as the frames that every session is sent.
 * @typedef {object} Segment
 * @property {number} first seq of its first message
 * @property {number} last
 * @property {Buffer} frames
 * @property {number[]} ends the end of each message's frame
 * @property {number} receivedAtMs when the first of them came
 *
 * @typedef {object} Room
 * @property {string} key
 * @property {JournalNamespace} namespace
 * @property {string | undefined} epoch `undefined` until the journal has said where the room stands
 * @property {number} reached seq of the last message that came
 * @property {number} oldest seq of the first message that the journal still holds, as last heard
 * @property {Segment[]} segments the tail, without a hole up to where `fresh` begins; this and the next four: tails.ts
 * @property {Message[]} fresh messages that came and are not encoded yet
 * @property {number} freshBytes
 * @property {number} freshAtMs
 * @property {Segment[]} pages read from the journal for sessions that are behind the tail
 * @property {ReturnType<typeof createMessageHeads>} headOf
 * @property {Map<number, Promise<import('./pages.ts').Page>>} reads by the seq after which they read; pages.ts
 * @property {RoomSubscription[]} subscriptions
 *
 * One session's place in one room: a number in place of a queue.
 * @typedef {object} RoomSubscription
 * @property {Session} session
 * @property {Room} room
 * @property {number} index in the room's list
 * @property {number} due MESSAGES of due.ts where it stands in its session's `due`, else 0
 * @property {number} cursor seq up to which the session was sent the room
 * @property {Placing | undefined} placing until the client was told where its stream begins
 * @property {boolean} isBehind whether a page of the history is read for it
 * @property {import('../presence/member-list.ts').MembersWatch | undefined} members set if the client is told of the
 *   members
 * @property {GapReason | undefined} gap a gap that the client must be told of before anything else
 * @property {import('./held-answers.ts').HeldAnswer[] | undefined} answers to its publishes that wait for the message to
 *   go first
 *
 * @typedef {object} Placing
 * @property {RoomStart | undefined} start the client's request
 * @property {import('./announcement.ts').Announcement} announcement
 * @property {boolean} isPlaced whether its place is known, and waits to be said
 * @property {boolean} isRecovered whether every message after the position that the client named follows
 * @property {boolean} isReading
 * @property {boolean} isTold whether the client was told that it takes a while
 */

/** Shared by all rooms without one. Never pushed to. */
export const NONE = /** @type {any[]} */ (/** @type {unknown} */ (Object.freeze([])))

/** @param {string} key @param {JournalNamespace} namespace @returns {Room} */
export function createRoom(key, namespace) {
  return {
    key,
    namespace,
    epoch: undefined,
    reached: 0,
    oldest: 1,
    segments: [],
    fresh: NONE,
    freshBytes: 0,
    freshAtMs: 0,
    pages: NONE,
    headOf: createMessageHeads(key),
    reads: new Map(),
    subscriptions: [],
  }
}
