// One room as this client follows it. Each reader is given every message after its place, in order and once, or a gap.
import { createListeners } from '../listeners.js'
import { createMembers } from './members.js'
import { createMembership } from './membership.js'

/**
 * A place in a room's order. `seq` counts 1, 2, 3 … within an `epoch`; another epoch is another history.
 *
 * @typedef {{ epoch: string, seq: number }} Position
 */

/**
 * @typedef {object} RoomOptions
 * @property {Position} [after] every message after this position is wanted, or a gap
 * @property {number} [last] so many messages are wanted at once, if the room has them; 500 at most
 * @property {boolean} [presence] whether the members are wanted
 * @property {boolean} [follow] false: nothing of the room is wanted, it is only published into, or read in parts
 * @property {number} [bufferMessages] how many messages a busy loop may be behind
 */

/**
 * @typedef {import('../errors.js').KeycastError} KeycastError
 */

/**
 * The messages after the last one cannot be given; the stream continues after `position`. `oldest` can still be read.
 * `slow`: this program's own loop was too far behind.
 *
 * @typedef {{ type: 'gap', position: Position, oldest: Position, reason: 'trimmed' | 'epoch' | 'ahead' | 'slow' }} Gap
 */

/**
 * @typedef {object} Reader
 * @property {Position | undefined} position of the last message it was given; undefined before its place is known
 * @property {number | undefined} last
 * @property {boolean} presence
 * @property {(item: Message | Gap) => void} take
 */

/**
 * @template [T=any]
 * @typedef {object} Message
 * @property {'message'} type
 * @property {Position} position
 * @property {number} at when it was kept, in milliseconds since 1970: to be shown, not to order by
 * @property {string} [from] the user who published it; missing for an anonymous one
 * @property {string} [messageId]
 * @property {T} data
 * @property {true} [deleted] it was deleted, and nothing is left but its place: `data` is null
 * @property {[first: number, last: number][]} [deletes] those from the first to the last `seq` of each part were deleted:
 *   show them no longer. It has no data itself
 */

/**
 * A message that was published here and whose outcome is not known yet.
 *
 * @template [T=any]
 * @typedef {{ messageId: string, data: T, at: number }} PendingMessage
 */

/**
 * The state of a room. The object stays the same until something of it changes.
 *
 * @template [T=any]
 * @typedef {object} RoomState
 * @property {boolean} live whether messages arrive as they are published: false before the first answer and after a loss
 * @property {import('../errors.js').Health} health how the stream of messages stands
 * @property {KeycastError | undefined} error if `subscribed`, it heals by itself; else the subscription has ended
 * @property {readonly PendingMessage<T>[]} pending
 * @property {string | undefined} joinedAs this client's name in the room
 */

/** A gateway gives at most so many messages at once. */
const LAST_MAX = 500

/** A room of which nothing is known. @type {RoomState} */
export const unknownRoom = Object.freeze({
  live: false,
  health: 'loading',
  error: undefined,
  pending: [],
  joinedAs: undefined,
})

export class Room {
  #state = unknownRoom
  /** For whom the subscribe asked, and what. @type {Set<Reader>} */
  #askedFor = new Set()
  /** @type {Reader | undefined} */
  #askedLast
  /** @type {Position | undefined} */
  #askedAfter

  /**
   * @param {string} key
   * @param {Parameters<typeof createMembership>[1] & { want: (key: string) => void }} deps
   *   `want` subscribes, or subscribes anew
   */
  constructor(key, deps) {
    const { createAlarm, link, want } = deps
    this.key = key
    /** Nobody may want it any more, where the gateway has not heard so yet. */
    this.want = () => {
      if (this.readers.size) want(key)
    }
    this.link = link
    this.listeners = createListeners(() => this.#state)
    this.members = createMembers(this.want)
    this.membership = createMembership(this, deps)
    /** @type {Set<Reader>} */
    this.readers = new Set()
    /** The number of handles that share it. */
    this.handles = 0
    /** How the subscription ended, if it did; and how often it was refused, one time after the other. */
    /** @type {import('../errors.js').Health | undefined} */
    this.end = undefined
    this.refusals = 0
    /** For the next try after a refusal. */
    this.refusal = createAlarm()
    /** The position that the stream has reached. @type {Position | undefined} */
    this.position = undefined
    /** The subscribe whose answer counts. */
    this.askId = 0
  }

  get state() {
    return this.#state
  }

  /** Whether it is not asked for again by itself. */
  get ended() {
    return this.end === 'ended'
  }

  /** @param {Partial<RoomState>} changes */
  become(changes) {
    const state = this.#state
    const next = { ...state, ...changes }
    next.health = this.#health(next)
    if (Object.entries(next).every(([name, value]) => value === state[/** @type {keyof RoomState} */ (name)])) return
    this.#state = Object.freeze(next)
    this.listeners.tell(this.#state)
  }

  /** @param {RoomState} state @returns {import('../errors.js').Health} */
  #health({ live, error }) {
    if (this.end) return this.end
    if (this.link.isOffline) return 'offline'
    if (!live) return 'loading'
    // An error of a join, or without a time to retry, says nothing about the stream.
    return error?.retryAfterMs === undefined || error === this.membership.error() ? 'live' : 'stale'
  }

  /** @param {Reader} reader */
  add(reader) {
    this.readers.add(reader)
    const isHere = this.#state.live && (!reader.presence || this.members.isWanted)
    if (isHere && !reader.position && !reader.last) reader.position = this.position
    else if (!isHere || !isSame(reader.position, this.position)) this.want()
  }

  /** The gateway sends nothing more of the room until it is asked again. */
  stop() {
    this.members.lost()
    this.become({ live: false })
  }

  /** How the next subscribe names the room: one of its readers may want more than the others. @param {number} id */
  ask(id) {
    const readers = [...this.readers]
    this.#askedFor = new Set(readers)
    this.askId = id
    this.become({ live: false })
    this.members.isWanted = readers.some(reader => reader.presence)
    this.#askedLast = readers.find(({ position, last }) => !position && last)
    const [first, ...others] = readers.flatMap(({ position }) => (this.#askedLast || !position ? [] : [position]))
    // Messages of another epoch than the first are asked for next, or reported as a gap.
    this.#askedAfter = others.reduce((a, b) => (a.epoch === b.epoch && b.seq < a.seq ? b : a), first)
    const { key, members } = this
    const after = this.#askedAfter
    const last = this.#askedLast?.last
    return after || last || members.isWanted ? { key, after, last, presence: members.isWanted || undefined } : key
  }

  /**
   * The answer to the latest {@link ask}: the stream begins anew, `count` messages before `seq`.
   *
   * @param {{ epoch: string, seq: number, oldest: number, recovered: boolean, count: number }} begun
   */
  begin({ epoch, seq, oldest, recovered, count }) {
    const head = positionOf(epoch, seq)
    const from = positionOf(epoch, seq - count)
    this.position = from
    this.end = undefined
    let isEnough = true
    for (const reader of this.readers) {
      const { position, last } = reader
      const isLost = !recovered && isSame(position, this.#askedAfter) && !isSame(position, from)
      if (reader === this.#askedLast) reader.position = from
      else if (!position) {
        if (last) isEnough = false
        else reader.position = head
        // One that came later may name a place that the room had not reached at this answer.
      } else if (!this.#askedFor.has(reader)) isEnough = false
      else if (position.epoch !== epoch) this.#tellGap(reader, head, oldest, 'epoch')
      else if (position.seq > seq) this.#tellGap(reader, head, oldest, 'ahead')
      else if (isLost) this.#tellGap(reader, head, oldest, 'trimmed')
      else if (position.seq < from.seq) isEnough = false
    }
    this.become({ live: true, error: undefined })
    if (!isEnough) this.want()
  }

  /** @param {Parameters<typeof toMessage>[1]} message */
  take(message) {
    if (!this.#state.live || !this.position) return
    const { epoch, seq } = this.position
    if (!(message.seq > seq)) return
    // No gateway leaves a hole: its idea of this client's position is wrong.
    if (message.seq !== seq + 1) return this.want()
    const item = toMessage(epoch, message)
    this.position = item.position
    this.become({ error: undefined })
    for (const reader of [...this.readers]) {
      if (reader.position?.epoch !== epoch || reader.position.seq !== seq) continue
      reader.position = item.position
      reader.take(item)
    }
  }

  /** @param {{ epoch: string, seq: number, oldest: number, reason: any }} gap that the gateway tells of */
  takeGap({ epoch, seq, oldest, reason }) {
    if (!this.#state.live) return
    this.position = positionOf(epoch, seq)
    for (const reader of [...this.readers]) {
      const { position } = reader
      if (!position) continue
      const isBeyond = position.seq > seq && reason === 'ahead'
      if (position.epoch !== epoch || position.seq < seq || isBeyond)
        this.#tellGap(reader, this.position, oldest, reason)
    }
  }

  /** @param {Reader} reader @param {Position} position @param {number} oldest @param {Gap['reason']} reason */
  #tellGap(reader, position, oldest, reason) {
    reader.position = position
    reader.take({ type: 'gap', position, oldest: positionOf(position.epoch, oldest), reason })
  }
}

/**
 * Frozen: the stream goes on from it, so a program that changed its own would miss messages.
 *
 * @param {string} epoch @param {number} seq @returns {Position}
 */
export const positionOf = (epoch, seq) => Object.freeze({ epoch, seq })

/**
 * @param {string} epoch
 * @param {Omit<Message, 'type' | 'position'> & { seq: number }} message as the gateway says it
 * @returns {Message}
 */
export const toMessage = (epoch, { seq, at, from, messageId, deleted, deletes, data }) => ({
  type: 'message',
  position: positionOf(epoch, seq),
  at,
  from,
  messageId,
  deleted,
  deletes,
  data,
})

/** Throws where a stream cannot begin there. @param {RoomOptions} options */
export function checkOptions({ after, last = 0, bufferMessages = 1 }) {
  checkPosition('after', after)
  if (!(Number.isInteger(last) && last >= 0 && last <= LAST_MAX)) {
    throw new TypeError(`"last" must be a whole number from 0 to ${LAST_MAX}`)
  }
  if (!(bufferMessages >= 1)) throw new TypeError('"bufferMessages" must be 1 or more')
}

/** @param {string} name of the option @param {unknown} given the option's value */
export function checkPosition(name, given) {
  // `null` is the result of JSON.parse for an item that localStorage does not have.
  if (given === undefined || given === null) return
  const { epoch, seq } = /** @type {Record<string, unknown>} */ (given)
  if (epoch && typeof epoch === 'string' && Number.isSafeInteger(seq) && Number(seq) >= 0) return
  throw new TypeError(`"${name}" must be a position, as in { epoch, seq }`)
}

/** @param {Position | undefined} a @param {Position | undefined} b */
const isSame = (a, b) => a !== undefined && a.epoch === b?.epoch && a.seq === b.seq
