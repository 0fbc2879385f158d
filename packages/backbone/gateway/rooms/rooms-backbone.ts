// The gateway's backbone of rooms: follows each watched room message by message, publishes, and reads histories. A hole
// in a room's order is never passed on: it is asked for again.
import { randomBytes } from 'node:crypto'
import { errorCodes } from '@keycast/protocol'
import { roomOf } from '../../wire/members-codec.ts'
import { HISTORY_MESSAGES_MAX, historyKey, readHistoryKey, roomsCodec } from '../../wire/rooms-codec.ts'
import { createRouter } from '../router.ts'
import { createPresenceBackbone } from './presence.ts'

/**
 * @typedef {import('../../wire/rooms-codec.ts').Position} Position
 * @typedef {import('../../wire/rooms-codec.ts').Message} Message
 * @typedef {import('../../wire/rooms-codec.ts').RoomErrorCode} RoomErrorCode
 * @typedef {import('../../wire/rooms-codec.ts').HistoryRange} HistoryRange
 * @typedef {import('../../wire/rooms-codec.ts').Published} Published
 * @typedef {import('../../wire/rooms-codec.ts').NotPublished} NotPublished
 *
 * @typedef {Omit<import('../../wire/rooms-codec.ts').HistoryAnswer, 'type' | 'key'> & { error?: undefined }} History
 */

/**
 * The gateway's side of rooms. Watches are state: the room's node is told of them when a link to it is up, and told
 * again, with the position reached by then, whenever that may have been lost.
 *
 * @typedef {RoomsStream & import('./presence.ts').PresenceBackbone} RoomsBackbone
 *
 * @typedef {object} RoomsStream
 * @property {() => Promise<void>} start resolves when the sockets exist, not when a journal answers
 * @property {() => Promise<void>} stop ends all requests under way
 * @property {(room: string, position?: Position) => void} watch asks for every message after the position, or without
 *   one after the head; until `unwatch`. A room that is watched already continues as it is
 * @property {(room: string) => void} unwatch
 * @property {(publish: { room: string, messageId: string | undefined, from: string, data: Buffer }, options: {
 *   deadlineMs: number }) => Promise<Published | NotPublished>} publish never rejects. Publishes into one room are kept
 *   in the order given. `publish_unknown`: the same messageId may be sent again, so the caller should give one
 * @property {(room: string, range: HistoryRange, options: { deadlineMs: number }) => Promise<History | NotPublished>}
 *   history never rejects. Concurrent requests for the same part of a room share one read
 * @property {(room: string) => boolean} isAvailable whether the room's journal answers now
 * @property {(room: string) => { node: string | undefined, alive: boolean }} ownerOf
 * @property {() => number} nodesAlive
 * @property {() => number} nodesHeld those that answer and are given no keys yet, since they were lost before
 * @property {() => { inUse: string | undefined, others: string[] }} logs the id of the log in use, and the journals that
 *   keep another log and are not used
 * @property {() => number} healed the number of holes that were asked for again
 */

/**
 * The functions that a gateway gives it. All are synchronous, and called only for watched rooms. Each room begins with
 * `onHead` or `onGap`. Then messages follow each other without a hole, and none comes twice; only `onGap` breaks that.
 *
 * @typedef {MessageEvents & import('./presence.ts').PresenceEvents} RoomsEvents
 *
 * @typedef {object} MessageEvents
 * @property {(room: string, head: { epoch: string, seq: number, oldest: number, after: number }) => void} onHead where
 *   the room stands. Messages follow from `after` + 1 on: the position reached so far. Again whenever a link began anew
 * @property {(room: string, batch: { epoch: string, messages: Message[] }) => void} onMessages one at least. `data` may
 *   be kept; it is a slice of a batch of up to 64 KiB
 * @property {(room: string, gap: { epoch: string, seq: number, oldest: number, reason:
 *   import('../../wire/rooms-codec.ts').GapReason }) => void} onGap the messages after the position cannot be given;
 *   the stream continues after `seq`
 * @property {(room: string, failure: { code: RoomErrorCode, message: string, retryAfterMs?: number }) => void} onFailed
 *   the watch stands. With `retryAfterMs` the journal tries again by itself
 * @property {() => void} [onRouted] the set of journals that answer may have changed: see `isAvailable`
 */

/** A client is told to wait this long while the journal is away. */
const RETRY_MS = 1_000

/** Limits on the publishes under way, and their data. Above them new ones are refused, since the journal is behind. */
const PUBLISHES_MAX = 50_000
const PUBLISH_BYTES_MAX = 64 * 2 ** 20

/** A hub cuts off a gateway that sends a larger part. */
const DATA_BYTES_MAX = 2 ** 20 - 1

/** Precision of the deadline of a history. */
const DEADLINE_CHECK_MS = 100

/**
 * @param {object} options
 * @param {import('../router.ts').NodeSource} options.nodeSource
 * @param {(name: string) => import('../link.ts').Dial} options.dialOf
 * @param {RoomsEvents} options.events
 * @param {() => number} options.now
 * @param {import('@keycast/service').Every} options.every
 * @param {Pick<import('@keycast/service').Containment, 'guard' | 'caught'>} [options.containment]
 * @param {import('../link.ts').Log} options.log
 * @returns {RoomsBackbone}
 */
export function createRoomsBackbone({ nodeSource, dialOf, events, containment, now, every, log }) {
  /**
   * `isPlaced`: the journal has told where the stream continues since the watch was last sent. Until then, and while a
   * hole is asked for again, messages that do not follow belong to an earlier watch.
   *
   * @type {Map<string, { position: Position | undefined, isPlaced: boolean }>}
   */
  const watched = new Map()
  /** By key of the get. @type {Map<string, Set<{ deadlineAt: number, done: (end: History | NotPublished) => void }>>} */
  const histories = new Map()
  let stopDeadlines = () => {}
  let publishes = 0
  let publishBytes = 0
  let nextCommand = 0
  let healed = 0

  const router = createRouter({
    codec: roomsCodec,
    placeOf: roomOf,
    nodeSource,
    dialOf,
    events: {
      position: key => watched.get(key)?.position ?? presence.positionOf(key),
      payload: key => presence.payloadOf(key),
      onAnswer,
      onHeads,
      onRouted: () => events.onRouted?.(),
    },
    containment,
    now,
    every,
    log,
  })
  const presence = createPresenceBackbone({ router, events, now, every })

  /** @param {import('../../wire/rooms-codec.ts').Answer} answer @param {boolean} isGot */
  function onAnswer(answer, isGot) {
    if (presence.onAnswer(answer, isGot)) return
    if (answer.type === 'history') {
      const { type, key, ...history } = answer
      return endHistory(key, history)
    }
    const { type, key, ...said } = answer
    if (type === 'failed' && readHistoryKey(key)) return endHistory(key, { error: answer.code, ...failureOf(answer) })
    const room = watched.get(key)
    if (!room) return
    switch (answer.type) {
      case 'head':
        return onHead(key, room, answer)
      case 'gap':
        room.isPlaced = true
        room.position = { epoch: answer.epoch, seq: answer.seq }
        return events.onGap(key, /** @type {any} */ (said))
      case 'failed':
        if (isGot) return // the link asked for any answer, to test whether they arrive
        return events.onFailed(key, { code: answer.code, ...failureOf(answer) })
      case 'messages':
        return onMessages(key, room, answer)
    }
  }

  /**
   * @param {string} key @param {{ position: Position | undefined, isPlaced: boolean }} room
   * @param {import('../../wire/rooms-codec.ts').HeadAnswer} head
   */
  function onHead(key, room, { epoch, seq, oldest, after }) {
    const { position } = room
    // It was made for the position of an earlier watch: messages under way have passed it meanwhile, or it is of
    // another epoch.
    if (position && (position.epoch !== epoch || position.seq < after)) return heal(key, room)
    room.isPlaced = true
    room.position ??= { epoch, seq: after }
    events.onHead(key, { epoch, seq, oldest, after: room.position.seq })
  }

  /**
   * @param {string} key @param {{ position: Position | undefined, isPlaced: boolean }} room
   * @param {import('../../wire/rooms-codec.ts').MessagesAnswer} batch
   */
  function onMessages(key, room, { epoch, messages }) {
    const { position } = room
    if (!position) return
    const follows = epoch === position.epoch && messages[0].seq <= position.seq + 1
    if (!follows) return room.isPlaced ? heal(key, room) : undefined
    const fresh = messages.slice(position.seq + 1 - messages[0].seq)
    if (fresh.length === 0) return
    position.seq = /** @type {Message} */ (fresh.at(-1)).seq
    events.onMessages(key, { epoch, messages: fresh })
  }

  /**
   * The journal's position in each room: a message up to it that has not arrived was lost.
   *
   * @param {import('../../wire/rooms-codec.ts').Heads} heads
   */
  function onHeads(heads) {
    for (const { key, epoch, seq } of heads) {
      const room = watched.get(key)
      if (!room?.isPlaced || !room.position) continue
      if (room.position.epoch !== epoch || room.position.seq < seq) heal(key, room)
    }
  }

  /** Sends the watch again, with the position reached. @param {string} key @param {{ isPlaced: boolean }} room */
  function heal(key, room) {
    room.isPlaced = false
    healed++
    router.linkOf(key)?.renewWatch(key)
  }

  /** @param {string} room @param {Position} [position] */
  function watch(room, position) {
    if (watched.has(room)) return
    watched.set(room, { position: position && { ...position }, isPlaced: false })
    router.watch(room)
  }

  /** @param {string} room */
  function unwatch(room) {
    if (watched.delete(room)) router.unwatch(room)
  }

  /** @type {RoomsBackbone['publish']} */
  async function publish({ room, messageId, from, data }, { deadlineMs }) {
    const link = router.linkOf(room)
    if (!link?.alive) return refusal('journal_unavailable')
    if (publishes >= PUBLISHES_MAX || publishBytes >= PUBLISH_BYTES_MAX) return refusal('journal_unavailable')
    if (data.length > DATA_BYTES_MAX) return { error: 'too_large', message: errorCodes.too_large }
    publishes++
    publishBytes += data.length
    /** @type {import('../../wire/rooms-codec.ts').Publish} */
    const command = { type: 'publish', room, messageId: messageId ?? newMessageId(), from, data }
    const id = String(++nextCommand)
    const end = await new Promise(resolve => link.command({ id, key: room, command, deadlineMs }, resolve))
    publishes--
    publishBytes -= data.length
    switch (/** @type {import('../commands.ts').CommandEnd<Published | NotPublished>} */ (end).type) {
      case 'result':
        // The first try may have succeeded, and only its answer was lost.
        return end.isRepeated && notKept.has(end.result.error) ? refusal('publish_unknown') : end.result
      case 'unknown':
        return refusal('publish_unknown')
      default:
        return refusal('journal_unavailable')
    }
  }

  /** @type {RoomsBackbone['history']} */
  function history(room, range, { deadlineMs }) {
    if (!isAvailable(room)) return Promise.resolve(refusal('journal_unavailable'))
    const key = historyKey(room, { ...range, limit: Math.max(1, Math.min(range.limit, HISTORY_MESSAGES_MAX)) })
    return new Promise(done => {
      const waiting = histories.get(key) ?? new Set()
      waiting.add({ deadlineAt: now() + deadlineMs, done })
      if (histories.size === 0) stopDeadlines = every(DEADLINE_CHECK_MS, expire)
      if (histories.has(key)) return
      histories.set(key, waiting)
      router.get(key)
    })
  }

  /** @param {string} key @param {History | NotPublished} end */
  function endHistory(key, end) {
    const waiting = histories.get(key)
    if (!waiting) return
    forgetHistory(key)
    for (const { done } of waiting) done(end)
  }

  /** @param {string} key */
  function forgetHistory(key) {
    histories.delete(key)
    if (histories.size === 0) stopDeadlines()
  }

  function expire() {
    for (const [key, waiting] of histories) {
      for (const each of waiting) {
        if (now() < each.deadlineAt) continue
        waiting.delete(each)
        each.done(refusal('journal_unavailable'))
      }
      if (waiting.size > 0) continue
      forgetHistory(key)
      router.cancelGet(key)
    }
  }

  /** @param {string} room */
  const isAvailable = room => router.ownerOf(room).alive

  return {
    start: router.start,
    async stop() {
      await router.stop()
      presence.stop()
      for (const key of [...histories.keys()]) endHistory(key, refusal('journal_unavailable'))
    },
    watch,
    unwatch,
    publish,
    history,
    isAvailable,
    ownerOf: router.ownerOf,
    nodesAlive: router.nodesAlive,
    logs: router.logs,
    nodesHeld: router.nodesHeld,
    join: presence.join,
    leave: presence.leave,
    watchMembers: presence.watchMembers,
    unwatchMembers: presence.unwatchMembers,
    membersOf: presence.membersOf,
    healed: () => healed,
  }
}

/** A log recognizes repeats of a publish by it. */
export const newMessageId = () => randomBytes(12).toString('base64url')

/** @type {Set<RoomErrorCode | undefined>} */
const notKept = new Set(['journal_unavailable', 'log_full'])

/** @param {'journal_unavailable' | 'publish_unknown'} error @returns {NotPublished} */
const refusal = error => ({ error, message: errorCodes[error], retryAfterMs: RETRY_MS })

/** @param {import('../../wire/rooms-codec.ts').FailedAnswer} answer */
const failureOf = ({ message, retryAfterMs }) => (retryAfterMs === undefined ? { message } : { message, retryAfterMs })
