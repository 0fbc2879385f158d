// A gateway's side of presence: its joins, which are repeated to the room's node whenever they may have been lost, and
// the members of rooms, change by change. A hole in the changes is never passed on: it is asked for again.
import { randomBytes } from 'node:crypto'
import { errorCodes } from '@keycast/protocol'
import { createUniqueQueue } from '@keycast/service'
import { joinKey, membersKey, readPresenceKey } from '../../wire/members-codec.ts'

/**
 * @typedef {import('../../wire/members-codec.ts').Member} Member
 * @typedef {import('../../wire/rooms-codec.ts').NotPublished} Refusal
 *
 * `user` is empty for an anonymous one. `claim`: what `Joined` gave an anonymous one before.
 * @typedef {{ room: string, user: string, name: string, claim: string | undefined }} Joining
 *
 * The name in its normal form. `claim`: a secret by which an anonymous one is known again.
 * @typedef {{ name: string, claim: string | undefined, error?: undefined }} Joined
 *
 * `members` is missing where they are only counted.
 * @typedef {{ count: number, members?: Member[], error?: undefined }} Members
 *
 * @typedef {object} PresenceBackbone
 * @property {(joining: Joining, options: { deadlineMs: number, onLost: (refusal: Refusal) => void }) =>
 *   { tab: string, joined: Promise<Joined | Refusal> }} join never rejects. One that is refused is over. `onLost`: it
 *   stood, and the room's node refuses it now; that happens where a node has lost its memory
 * @property {(tab: string, leaving: import('../../wire/members-codec.ts').Leaving) => void} leave the join is over. `later`:
 *   the connection broke, so the member stays for a while and may come back elsewhere
 * @property {(room: string) => void} watchMembers asks for the members and every change, until `unwatchMembers`
 * @property {(room: string) => void} unwatchMembers
 * @property {(room: string, options: { deadlineMs: number }) => Promise<Members | Refusal>} membersOf asks once; never
 *   rejects
 *
 * What a gateway gives it; called for rooms whose members are watched. First comes `onMembers`, then changes whose `rev`
 * counts on without a hole, until `onMembers` comes again with any `rev`.
 *
 * @typedef {object} PresenceEvents
 * @property {(room: string, said: { rev: number, count: number, members?: Member[] }) => void} [onMembers]
 * @property {(room: string, said: { rev: number, count: number, joined?: Member[], left?: Member[] }) => void} [onPresence]
 *
 * `deadlineAt`: of its answer, later of its end.
 *
 * @typedef {{ said: import('../../wire/members-codec.ts').Join, isJoined: boolean, deadlineAt: number,
 *   done: (end: Joined | Refusal) => void, onLost: (refusal: Refusal) => void }} Join
 */

/** How long a node keeps a member whose connection broke. */
export const GHOST_MS = 10_000

/** Precision of deadlines. */
const CHECK_MS = 100

/** A client is told to wait this long while the journal is away. */
const RETRY_MS = 1_000

/**
 * @param {object} options
 * @param {object} options.router
 * @param {(key: string) => void} options.router.watch
 * @param {(key: string) => void} options.router.unwatch
 * @param {(key: string) => void} options.router.get
 * @param {(key: string) => void} options.router.cancelGet
 * @param {(key: string) => { renewWatch: (key: string) => void } | undefined} options.router.linkOf
 * @param {(key: string) => { alive: boolean }} options.router.ownerOf
 * @param {PresenceEvents} options.events
 * @param {() => number} options.now
 * @param {import('@keycast/service').Every} options.every
 */
export function createPresenceBackbone({ router, events, now, every }) {
  /** Distinguishes this process's joins from those of other gateways, and of an earlier process. */
  const incarnation = randomBytes(6).toString('base64url')
  let tabs = 0
  /** By key. @type {Map<string, Join>} */
  const joins = new Map()
  /** Keys of joins that wait for an answer. @type {Set<string>} */
  const pending = new Set()
  /** Keys of ended joins, until the node confirms their end; oldest first. */
  const ending = /** @type {import('@keycast/service').UniqueQueue<string>} */ (createUniqueQueue())
  /** By room; `undefined` until it is known. @type {Map<string, { epoch: string, seq: number } | undefined>} */
  const watched = new Map()
  /** By room. @type {Map<string, { deadlineAt: number, done: (end: Members | Refusal) => void }[]>} */
  const reads = new Map()
  let stopChecks = () => {}
  let isChecking = false

  /** Checks deadlines while there are any. */
  function check() {
    const isNeeded = pending.size + ending.size + reads.size > 0
    if (isNeeded === isChecking) return
    isChecking = isNeeded
    stopChecks()
    if (isNeeded) stopChecks = every(CHECK_MS, onCheck)
  }

  function onCheck() {
    for (const key of pending) {
      const join = /** @type {Join} */ (joins.get(key))
      if (now() >= join.deadlineAt) refuse(key, join, unavailable())
    }
    for (let key = ending.first(); key !== undefined && isOver(key); key = ending.first()) forget(key)
    for (const [room, waiting] of reads) {
      const over = waiting.filter(each => now() >= each.deadlineAt)
      if (over.length === waiting.length) endRead(room, unavailable())
      else if (over.length > 0) {
        reads.set(
          room,
          waiting.filter(each => !over.includes(each)),
        )
        for (const { done } of over) done(unavailable())
      }
    }
    check()
  }

  /** @param {string} key of a join that is over */
  const isOver = key => now() >= /** @type {Join} */ (joins.get(key)).deadlineAt

  /** @type {PresenceBackbone['join']} */
  function join({ room, user, name, claim }, { deadlineMs, onLost }) {
    const key = joinKey(room, `${incarnation}.${++tabs}`)
    const known = user === '' ? (claim ?? randomBytes(16).toString('base64url')) : undefined
    const joined = new Promise(done => {
      /** @type {import('../../wire/members-codec.ts').Join} */
      const said = { user, name, claim: known, leaving: undefined }
      joins.set(key, { said, isJoined: false, deadlineAt: now() + deadlineMs, done, onLost })
    })
    pending.add(key)
    router.watch(key)
    check()
    return { tab: key, joined }
  }

  /** @type {PresenceBackbone['leave']} */
  function leave(key, leaving) {
    const join = joins.get(key)
    if (!join || join.said.leaving) return
    join.done(unavailable())
    pending.delete(key)
    // Sent as a state, too: the end of a watch alone may mean that the room has another node.
    join.said.leaving = leaving
    router.linkOf(key)?.renewWatch(key)
    // A node that has not heard it by then has lost this gateway long ago.
    join.deadlineAt = now() + GHOST_MS
    ending.add(key)
    check()
  }

  /** @param {string} key a join whose end the node has confirmed */
  function end(key) {
    forget(key)
    check()
  }

  /** @param {string} key of a join */
  function forget(key) {
    pending.delete(key)
    ending.delete(key)
    if (joins.delete(key)) router.unwatch(key)
  }

  /** @param {string} key @param {Join} join @param {Refusal} refusal */
  function refuse(key, join, refusal) {
    end(key)
    if (!join.isJoined) join.done(refusal)
    else if (!join.said.leaving) join.onLost(refusal)
  }

  /**
   * @param {import('../../wire/rooms-codec.ts').Answer} answer @param {boolean} isGot
   * @returns {boolean} false if it is about something else
   */
  function onAnswer(answer, isGot) {
    const about = readPresenceKey(answer.key)
    if (!about) return false
    const { room, tab } = about
    if (tab !== undefined) onJoinAnswer(answer, isGot)
    else if (isGot) endRead(room, answer)
    else if (answer.type === 'members') onMembers(room, answer)
    else if (answer.type === 'presence') onPresence(room, answer)
    return true
  }

  /**
   * @param {import('../../wire/rooms-codec.ts').Answer} answer @param {boolean} isGot only to test whether the node
   * answers
   */
  function onJoinAnswer(answer, isGot) {
    const join = joins.get(answer.key)
    if (!join || isGot) return
    if (answer.type === 'failed') return refuse(answer.key, join, refusalOf(answer))
    if (answer.type === 'left' && join.said.leaving) return end(answer.key)
    if (answer.type !== 'joined' || join.isJoined || join.said.leaving) return
    join.isJoined = true
    pending.delete(answer.key)
    check()
    join.done({ name: answer.name, claim: join.said.claim })
  }

  /** @param {string} room @param {import('../../wire/members-codec.ts').MembersAnswer} answer */
  function onMembers(room, { epoch, rev, count, members }) {
    if (!watched.has(room)) return
    watched.set(room, { epoch, seq: rev })
    events.onMembers?.(room, members ? { rev, count, members } : { rev, count })
  }

  /** @param {string} room @param {import('../../wire/members-codec.ts').PresenceAnswer} answer */
  function onPresence(room, { epoch, rev, count, joined, left }) {
    const position = watched.get(room)
    if (!position) return
    const isOther = epoch !== position.epoch
    if (!isOther && rev <= position.seq) return // a repeated request was answered twice
    if (isOther || rev > position.seq + 1) return router.linkOf(room)?.renewWatch(membersKey(room))
    position.seq = rev
    events.onPresence?.(room, joined ? { rev, count, joined, left } : { rev, count })
  }

  /** @type {PresenceBackbone['membersOf']} */
  function membersOf(room, { deadlineMs }) {
    if (!router.ownerOf(room).alive) return Promise.resolve(unavailable())
    return new Promise(done => {
      const each = { deadlineAt: now() + deadlineMs, done }
      const waiting = reads.get(room)
      if (waiting) waiting.push(each)
      else {
        reads.set(room, [each])
        router.get(membersKey(room))
        check()
      }
    })
  }

  /** @param {string} room @param {import('../../wire/rooms-codec.ts').Answer | Refusal} end */
  function endRead(room, end) {
    const waiting = reads.get(room)
    if (!waiting) return
    reads.delete(room)
    check()
    router.cancelGet(membersKey(room))
    for (const { done } of waiting) done(membersIn(end))
  }

  return {
    join,
    leave,
    membersOf,
    /** @param {string} room */
    watchMembers(room) {
      if (watched.has(room)) return
      watched.set(room, undefined)
      router.watch(membersKey(room))
    },
    /** @param {string} room */
    unwatchMembers(room) {
      if (watched.delete(room)) router.unwatch(membersKey(room))
    },
    onAnswer,
    /** @param {string} key */
    positionOf(key) {
      const about = readPresenceKey(key)
      return about && about.tab === undefined ? watched.get(about.room) : undefined
    },
    /** @param {string} key */
    payloadOf: key => joins.get(key)?.said,
    stop() {
      for (const [key, each] of joins) {
        joins.delete(key)
        each.done(unavailable())
      }
      pending.clear()
      for (let key = ending.take(); key !== undefined; key = ending.take());
      for (const room of [...reads.keys()]) endRead(room, unavailable())
      check()
    },
  }
}

/** @returns {Refusal} */
const unavailable = () => ({
  error: 'journal_unavailable',
  message: errorCodes.journal_unavailable,
  retryAfterMs: RETRY_MS,
})

/** @param {import('../../wire/rooms-codec.ts').FailedAnswer} answer @returns {Refusal} */
function refusalOf({ code: error, message, retryAfterMs }) {
  return retryAfterMs === undefined ? { error, message } : { error, message, retryAfterMs }
}

/** @param {import('../../wire/rooms-codec.ts').Answer | Refusal} end @returns {Members | Refusal} */
function membersIn(end) {
  if (!('type' in end)) return end
  if (end.type === 'failed') return refusalOf(end)
  if (end.type !== 'members') return unavailable()
  return end.members ? { count: end.count, members: end.members } : { count: end.count }
}
