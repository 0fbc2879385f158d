// The gateway's backbone of rooms: follows watched rooms and their members, publishes, deletes, and reads histories.
import { isProblem, type Position, type Problem } from '@keycast/protocol'
import { type Containment, createStock, type Payer, type World } from '@keycast/service'
import { roomOf } from '../../wire/members-codec.ts'
import {
  type Answer,
  type Delete,
  type Deleted,
  HISTORY_MESSAGES_MAX,
  type HistoryAnswer,
  type HistoryRange,
  historyKey,
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
import { problemOf, refusal, unavailable } from './problems.ts'
import { createPushedBackbone, type PushedBackbone, type PushedEvents } from './pushed.ts'
import { createStreams, type MessageEvents } from './streams.ts'

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

/** The functions that a gateway gives it. All are synchronous, and called only for watched rooms. */
export type RoomsEvents = MessageEvents & PresenceEvents & PushedEvents

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
  let publishes = 0
  let publishBytes = 0
  /** Of publishes under way, of which each account has a share. */
  const places = createStock({ free: () => PUBLISHES_MAX - publishes })

  const router = createRouter({
    ...given,
    codec: roomsCodec,
    placeOf: roomOf,
    events: {
      position: key => streams.positionOf(key) ?? presence.positionOf(key) ?? pushed.positionOf(key),
      payload: key => presence.payloadOf(key),
      payer: key => histories.payerOf(key) ?? presence.payerOf(key),
      onAnswer,
      onHeads: heads => streams.onHeads(heads),
      onRouted: () => events.onRouted?.(),
    },
  })
  const streams = createStreams({ router, events, after })
  const presence = createPresenceBackbone({ router, events, now, every, randomBytes })
  const pushed = createPushedBackbone({ router, events })
  const histories: Coalesced<History | Problem> = createCoalesced<History | Problem>({
    get: router.get,
    cancelGet: router.cancelGet,
    unanswered: unavailable,
    now,
    every,
  })

  function onAnswer(answer: Answer, isGot: boolean) {
    if (pushed.onAnswer(answer, isGot) || presence.onAnswer(answer, isGot)) return
    const { key } = answer
    if (answer.type === 'history') return histories.end(key, historyOf(answer))
    if (answer.type === 'failed' && readHistoryKey(key)) return histories.end(key, problemOf(answer))
    streams.onAnswer(answer)
  }

  // A callback, not a promise: of the thousands of publishes under way each costs the memory that lives until its end.
  const publish: RoomsBackbone['publish'] = ({ room, messageId, from, data, payer }, { deadlineMs }, done) => {
    if (!router.isAlive(room)) return done(unavailable())
    if (publishes >= PUBLISHES_MAX || publishBytes >= PUBLISH_BYTES_MAX) return done(unavailable())
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
    if (!router.isAlive(key)) return unavailable()
    const command: Delete = { type: 'delete', ...which }
    const end = await new Promise<CommandEnd<unknown>>(resolve => router.command({ key, command, deadlineMs }, resolve))
    if (end.type === 'result') return end.result as Deleted | Problem
    const { code, retryAfterMs } = unavailable()
    const message =
      end.type === 'refused'
        ? 'the journal is of a release that deletes nothing'
        : 'it is not known yet whether all is deleted: call again, it does no harm'
    return { code, message, retryAfterMs }
  }

  const history: RoomsBackbone['history'] = (room, range, options) => {
    if (!router.isAlive(room)) return Promise.resolve(unavailable())
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
    watch: streams.watch,
    unwatch: streams.unwatch,
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
    healed: streams.healed,
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
      return unavailable()
  }
}

const historyOf = ({ type, key, ...history }: HistoryAnswer): History => history

const notKept = new Set<Problem['code']>(['journal_unavailable', 'log_full', 'capacity', 'rate_limited'])
