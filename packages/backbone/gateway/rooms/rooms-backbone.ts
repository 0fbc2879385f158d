// The gateway's backbone of rooms: follows each watched room message by message, publishes, and reads histories. A hole
// in a room's order is never passed on: it is asked for again.
import type { Position } from '@keycast/protocol'
import { isProblem, type Problem } from '@keycast/protocol'
import { BEAT_MS, type Containment, createStock, type Payer, type World } from '@keycast/service'
import { roomOf } from '../../wire/members-codec.ts'
import {
  type Answer,
  type Delete,
  type Deleted,
  type GapReason,
  gapFrom,
  type HeadAnswer,
  type Heads,
  HISTORY_MESSAGES_MAX,
  type HistoryAnswer,
  type HistoryRange,
  historyKey,
  type Message,
  type MessagesAnswer,
  type Publish,
  type Published,
  readHistoryKey,
  roomsCodec,
} from '../../wire/rooms-codec.ts'
import { type Coalesced, createCoalesced } from '../coalesced-gets.ts'
import type { CommandEnd } from '../commands.ts'
import type { Dial, Log } from '../link.ts'
import { createRouter, type NodeSource } from '../router.ts'
import { createPresenceBackbone, type PresenceBackbone, type PresenceEvents } from './presence.ts'
import { createPushedBackbone, type PushedBackbone, type PushedEvents } from './pushed.ts'

/** Nobody pays for what a backend asks. */
interface Paid {
  payer?: Payer
}

export type History = Omit<HistoryAnswer, 'type' | 'key'>

/**
 * The gateway's side of rooms. Watches are state: the room's node is told of them when a link to it is up, and told
 * again, with the position reached by then, whenever that may have been lost.
 */
export type RoomsBackbone = RoomsStream & PresenceBackbone

interface RoomsStream {
  /** Resolves when the sockets exist, not when a journal answers. */
  start: () => Promise<void>
  /** Ends all requests under way. */
  stop: () => Promise<void>
  /**
   * Asks for every message after the position, or without one after the head; until `unwatch`. A room that is watched
   * already continues as it is.
   */
  watch: (room: string, position?: Position) => void
  unwatch: (room: string) => void
  /**
   * Calls `done` once, with its outcome, perhaps at once. Publishes into one room are kept in the order given.
   * `publish_unknown`: the same messageId may be sent again, so the caller should give one. `payer`: who publishes; nobody
   * where a backend does.
   */
  publish: (
    publish: { room: string; messageId: string | undefined; from: string; data: Buffer } & Paid,
    options: { deadlineMs: number },
    done: (outcome: Published | Problem) => void,
  ) => void
  /** Never rejects. Deletes messages for good: some of a room or all that it holds, or a user's everywhere. */
  deleteMessages: (
    which: { room: string; seqs?: number[] } | { user: string },
    options: { deadlineMs: number },
  ) => Promise<Deleted | Problem>
  /** Never rejects. Concurrent requests for the same part of a room share one read. */
  history: (room: string, range: HistoryRange, options: { deadlineMs: number } & Paid) => Promise<History | Problem>
  /** Whether the room's journal answers now. */
  isAvailable: (room: string) => boolean
  ownerOf: (room: string) => { node: string | undefined; alive: boolean }
  nodesAlive: () => number
  /** Those that answer and are given no keys yet, since they were lost before. */
  nodesHeld: () => number
  /** The id of the log in use, and the journals that keep another log and are not used. */
  logs: () => { inUse: string | undefined; others: string[] }
  /** The number of holes that were asked for again. */
  healed: () => number
  /** Values that backends hand over and the journal keeps. */
  values: PushedBackbone
}

/**
 * The functions that a gateway gives it. All are synchronous, and called only for watched rooms. Each room begins with
 * `onHead` or `onGap`. Then messages follow each other without a hole, and none comes twice; only `onGap` breaks that.
 */
export type RoomsEvents = MessageEvents & PresenceEvents & PushedEvents

export interface MessageEvents {
  /**
   * Where the room stands. Messages follow from `after` + 1 on: the position reached so far. Again whenever a link
   * began anew, and where `oldest` rose without a message.
   */
  onHead: (room: string, head: { epoch: string; seq: number; oldest: number; after: number }) => void
  /**
   * One at least. `data` may be kept; it is a slice of a batch of up to 64 KiB. A journal of an earlier release does not
   * say `oldest`.
   */
  onMessages: (room: string, batch: { epoch: string; oldest: number | undefined; messages: Message[] }) => void
  /** The messages after the position cannot be given; the stream continues after `seq`. */
  onGap: (room: string, gap: { epoch: string; seq: number; oldest: number; reason: GapReason }) => void
  /** The watch stands. With `retryAfterMs` the journal tries again by itself. */
  onFailed: (room: string, problem: Problem) => void
  /** The set of journals that answer may have changed: see `isAvailable`. */
  onRouted?: () => void
}

/** A client is told to wait this long while the journal is away. */
const RETRY_MS = 1_000

/** Limits on the publishes under way, and their data. Above them new ones are refused, since the journal is behind. */
const PUBLISHES_MAX = 50_000
const PUBLISH_BYTES_MAX = 64 * 2 ** 20

/** A hub cuts off a gateway that sends a larger part. */
const DATA_BYTES_MAX = 2 ** 20 - 1

interface Options extends World {
  nodeSource: NodeSource
  dialOf: (name: string) => Dial
  events: RoomsEvents
  containment?: Containment
  log: Log
}

export function createRoomsBackbone({ events, ...given }: Options): RoomsBackbone {
  const { now, every, after, randomBytes } = given
  /**
   * `isPlaced`: the journal has told where the stream continues since the watch was last sent. Until then, and while a
   * hole is asked for again, messages that do not follow belong to an earlier watch. `healing`: the hole was asked for
   * within the last beat, and the journal has not placed the watch since. `isDue`: it answered what does not fit.
   */
  interface Watched {
    position: Position | undefined
    isPlaced: boolean
    healing?: { isDue: boolean }
  }
  const watched = new Map<string, Watched>()
  let publishes = 0
  let publishBytes = 0
  /** Of publishes under way, of which each account has a share. */
  const places = createStock({ free: () => PUBLISHES_MAX - publishes })
  let healed = 0

  const router = createRouter({
    ...given,
    codec: roomsCodec,
    placeOf: roomOf,
    events: {
      position: key => watched.get(key)?.position ?? presence.positionOf(key) ?? pushed.positionOf(key),
      payload: key => presence.payloadOf(key),
      payer: key => histories.payerOf(key) ?? presence.payerOf(key),
      onAnswer,
      onHeads,
      onRouted: () => events.onRouted?.(),
    },
  })
  const presence = createPresenceBackbone({ router, events, now, every, randomBytes })
  const pushed = createPushedBackbone({ router, events })
  const histories: Coalesced<History | Problem> = createCoalesced<History | Problem>({
    get: router.get,
    cancelGet: router.cancelGet,
    unanswered: () => refusal('journal_unavailable'),
    now,
    every,
  })

  function onAnswer(answer: Answer, isGot: boolean) {
    if (pushed.onAnswer(answer, isGot) || presence.onAnswer(answer, isGot)) return
    if (answer.type === 'history') {
      const { type, key, ...history } = answer
      return histories.end(key, history)
    }
    const { type, key, ...said } = answer
    if (type === 'failed' && readHistoryKey(key)) {
      return histories.end(key, said as Problem)
    }
    const room = watched.get(key)
    if (!room) return
    switch (answer.type) {
      case 'head':
        return onHead(key, room, answer)
      case 'gap':
        // Made for the position of an earlier watch: what follows this one can be given, or is missing for another reason.
        if (room.position && gapFrom(room.position, answer) !== answer.reason) return heal(key, room)
        place(room)
        room.position = { epoch: answer.epoch, seq: answer.seq }
        return events.onGap(key, answer)
      case 'failed':
        return events.onFailed(key, said as Problem)
      case 'messages':
        return onMessages(key, room, answer)
    }
  }

  function onHead(key: string, room: Watched, { epoch, seq, oldest, after }: HeadAnswer) {
    const { position } = room
    // It was made for the position of an earlier watch: messages under way have passed it meanwhile, or it is of
    // another epoch.
    if (position && (position.epoch !== epoch || position.seq < after)) return heal(key, room)
    place(room)
    room.position ??= { epoch, seq: after }
    events.onHead(key, { epoch, seq, oldest, after: room.position.seq })
  }

  function onMessages(key: string, room: Watched, { epoch, oldest, messages }: MessagesAnswer) {
    const { position } = room
    if (!position) return
    const follows = epoch === position.epoch && messages[0].seq <= position.seq + 1
    if (!follows) return room.isPlaced ? heal(key, room) : undefined
    const fresh = messages.slice(position.seq + 1 - messages[0].seq)
    if (fresh.length === 0) return
    position.seq = (fresh.at(-1) as Message).seq
    events.onMessages(key, { epoch, oldest, messages: fresh })
  }

  /** The journal's position in each room: a message up to it that has not arrived was lost. */
  function onHeads(heads: Heads) {
    for (const { key, epoch, seq } of heads) {
      const room = watched.get(key)
      if (!room?.isPlaced || !room.position) continue
      if (room.position.epoch !== epoch || room.position.seq < seq) heal(key, room)
    }
  }

  /** The journal has told where the stream continues. */
  function place(room: Watched) {
    room.isPlaced = true
    room.healing = undefined
  }

  /**
   * Sends the watch again, with the position reached. Once a beat at most until that is answered: a journal whose answers
   * never fit would be asked as fast as it answers.
   */
  function heal(key: string, room: Watched) {
    room.isPlaced = false
    if (room.healing) {
      room.healing.isDue = true
      return
    }
    healed++
    router.renewWatch(key)
    const healing = { isDue: false }
    room.healing = healing
    after(BEAT_MS, () => {
      if (room.healing !== healing) return
      room.healing = undefined
      if (healing.isDue && watched.get(key) === room) heal(key, room)
    })
  }

  function watch(room: string, position?: Position) {
    if (watched.has(room)) return
    watched.set(room, { position: position && { ...position }, isPlaced: false })
    router.watch(room)
  }

  function unwatch(room: string) {
    if (watched.delete(room)) router.unwatch(room)
  }

  // A callback, not a promise: of the thousands of publishes under way each costs the memory that lives until its end.
  const publish: RoomsBackbone['publish'] = ({ room, messageId, from, data, payer }, { deadlineMs }, done) => {
    if (!router.isAlive(room)) return done(refusal('journal_unavailable'))
    if (publishes >= PUBLISHES_MAX || publishBytes >= PUBLISH_BYTES_MAX) return done(refusal('journal_unavailable'))
    if (data.length > DATA_BYTES_MAX) return done({ code: 'too_large' })
    if (!places.hasRoom(payer, 1)) return done(refusal('rate_limited'))
    const holder = places.charge(payer, 1)
    publishes++
    publishBytes += data.length
    const command: Publish = { type: 'publish', room, messageId: messageId ?? newMessageId(randomBytes), from, data }
    router.command({ key: room, command, payer, deadlineMs }, end => {
      publishes--
      if (holder) places.change(holder, -1)
      publishBytes -= data.length
      done(outcomeOf(end as CommandEnd<Published | Problem>))
    })
  }

  const deleteMessages: RoomsBackbone['deleteMessages'] = async (which, { deadlineMs }) => {
    // Any journal of the log can look for a user's messages.
    const key = 'user' in which ? which.user : which.room
    if (!router.isAlive(key)) return refusal('journal_unavailable')
    const command: Delete = { type: 'delete', ...which }
    const end = await new Promise<CommandEnd<unknown>>(resolve => router.command({ key, command, deadlineMs }, resolve))
    if (end.type === 'result') return end.result as Deleted | Problem
    const { code, retryAfterMs } = refusal('journal_unavailable')
    const message =
      end.type === 'refused'
        ? 'the journal is of a release that deletes nothing'
        : 'it is not known yet whether all is deleted: call again, it does no harm'
    return { code, message, retryAfterMs }
  }

  const history: RoomsBackbone['history'] = (room, range, options) => {
    if (!router.isAlive(room)) return Promise.resolve(refusal('journal_unavailable'))
    const limit = Math.max(1, Math.min(range.limit, HISTORY_MESSAGES_MAX))
    const key = historyKey(room, { ...range, limit })
    return histories.call(key, options)
  }

  return {
    start: router.start,
    async stop() {
      await router.stop()
      presence.stop()
      histories.stop()
    },
    watch,
    unwatch,
    publish,
    deleteMessages,
    history,
    isAvailable: router.isAlive,
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
    values: pushed.values,
  }
}

/** As a promise, which never rejects: for those who publish seldom. */
export const publishTo = (
  backbone: Pick<RoomsBackbone, 'publish'>,
  publish: Parameters<RoomsBackbone['publish']>[0],
  options: { deadlineMs: number },
): Promise<Published | Problem> => new Promise(resolve => backbone.publish(publish, options, resolve))

/** A log recognizes repeats of a publish by it. */
export const newMessageId = (randomBytes: (size: number) => Buffer) => randomBytes(12).toString('base64url')

function outcomeOf(end: CommandEnd<Published | Problem>): Published | Problem {
  switch (end.type) {
    case 'result':
      // The first try may have succeeded, and only its answer was lost.
      return end.isRepeated && isProblem(end.result) && notKept.has(end.result.code)
        ? refusal('publish_unknown')
        : end.result
    case 'unknown':
      return refusal('publish_unknown')
    default:
      return refusal('journal_unavailable')
  }
}

const notKept = new Set<Problem['code']>(['journal_unavailable', 'log_full', 'capacity', 'rate_limited'])

const refusal = (code: 'journal_unavailable' | 'publish_unknown' | 'rate_limited'): Problem => ({
  code,
  retryAfterMs: RETRY_MS,
})
