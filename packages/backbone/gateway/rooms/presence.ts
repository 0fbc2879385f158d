// A gateway's side of presence: its joins, which are repeated to the room's node whenever they may have been lost, and
// the members of rooms, change by change. A hole in the changes is never passed on: it is asked for again.
import type { Problem } from '@keycast/protocol'
import { createUniqueQueue, type Every, type Payer, type UniqueQueue } from '@keycast/service'
import {
  type Join as JoinOf,
  joinKey,
  type Leaving,
  type Member,
  type MembersAnswer,
  membersKey,
  type PresenceAnswer,
  readPresenceKey,
} from '../../wire/members-codec.ts'
import type { Answer, Rooms } from '../../wire/rooms-codec.ts'
import { createCoalesced } from '../coalesced-gets.ts'
import { createDeadlineChecks } from '../deadline-checks.ts'
import type { Router } from '../router.ts'
import { problemOf, unavailable } from './problems.ts'

/** `user` is empty for an anonymous one. `claim`: what `Joined` gave an anonymous one before. */
interface Joining {
  room: string
  user: string
  name: string
  claim: string | undefined
  /** Who joins. */
  payer?: Payer
}

/** The name in its normal form. `claim`: a secret by which an anonymous one is known again. */
interface Joined {
  name: string
  claim: string | undefined
}

/** `members` is missing where they are only counted. */
interface Members {
  count: number
  members?: Member[]
}

export interface PresenceBackbone {
  /**
   * Never rejects. One that is refused is over. `onLost`: it stood, and the room's node refuses it now; that happens
   * where a node has lost its memory.
   */
  join: (
    joining: Joining,
    options: { deadlineMs: number; onLost: (problem: Problem) => void },
  ) => { tab: string; joined: Promise<Joined | Problem> }
  /** The join is over. `later`: the connection broke, so the member stays for a while and may come back elsewhere. */
  leave: (tab: string, leaving: Leaving) => void
  /** Asks for the members and every change, until `unwatchMembers`. */
  watchMembers: (room: string) => void
  unwatchMembers: (room: string) => void
  /** Asks once; never rejects. */
  membersOf: (room: string, options: { deadlineMs: number }) => Promise<Members | Problem>
}

/**
 * What a gateway gives it; called for rooms whose members are watched. First comes `onMembers`, then changes whose
 * `rev` counts on without a hole, until `onMembers` comes again with any `rev`.
 */
export interface PresenceEvents {
  onMembers?: (room: string, said: { rev: number; count: number; members?: Member[] }) => void
  onPresence?: (room: string, said: { rev: number; count: number; joined?: Member[]; left?: Member[] }) => void
}

/** `deadlineAt`: of its answer, later of its end. */
interface Join {
  said: JoinOf
  payer: Payer | undefined
  isJoined: boolean
  deadlineAt: number
  done: (end: Joined | Problem) => void
  onLost: (problem: Problem) => void
}

/** How long a node keeps a member whose connection broke. */
export const GHOST_MS = 10_000

interface Options {
  router: Pick<Router<Rooms>, 'watch' | 'unwatch' | 'get' | 'cancelGet' | 'renewWatch' | 'isAlive'>
  events: PresenceEvents
  now: () => number
  every: Every
  randomBytes: (size: number) => Buffer
}

export function createPresenceBackbone({ router, events, now, every, randomBytes }: Options) {
  /** Distinguishes this process's joins from those of other gateways, and of an earlier process. */
  const incarnation = randomBytes(6).toString('base64url')
  let tabs = 0
  /** By key. */
  const joins = new Map<string, Join>()
  /** Keys of joins that wait for an answer. */
  const pending = new Set<string>()
  /** Keys of ended joins, until the node confirms their end; oldest first. */
  const ending = createUniqueQueue() as UniqueQueue<string>
  /** By room; `undefined` until it is known. */
  const watched = new Map<string, { epoch: string; seq: number } | undefined>()
  /** By key of the room's members. */
  const reads = createCoalesced<Members | Problem>({
    get: router.get,
    cancelGet: router.cancelGet,
    unanswered: unavailable,
    now,
    every,
  })
  const watchDeadlines = createDeadlineChecks({ every, isNeeded: () => pending.size + ending.size > 0, expire })

  function expire() {
    // A node that was slow, or stood still, may take it later, or has: nobody is to see a member who was refused.
    for (const key of pending) if (isOver(key)) leave(key, 'now')
    for (let key = ending.first(); key !== undefined && isOver(key); key = ending.first()) forget(key)
  }

  /** @param key of a join whose time may be over */
  const isOver = (key: string) => now() >= (joins.get(key) as Join).deadlineAt

  function join(
    { room, user, name, claim, payer }: Parameters<PresenceBackbone['join']>[0],
    { deadlineMs, onLost }: Parameters<PresenceBackbone['join']>[1],
  ): ReturnType<PresenceBackbone['join']> {
    const key = joinKey(room, `${incarnation}.${++tabs}`)
    const known = user === '' ? (claim ?? randomBytes(16).toString('base64url')) : undefined
    const joined = new Promise<Joined | Problem>(done => {
      const said: JoinOf = { user, name, claim: known, leaving: undefined }
      joins.set(key, { said, payer, isJoined: false, deadlineAt: now() + deadlineMs, done, onLost })
    })
    pending.add(key)
    router.watch(key)
    watchDeadlines()
    return { tab: key, joined }
  }

  const leave: PresenceBackbone['leave'] = (key, leaving) => {
    const join = joins.get(key)
    if (!join || join.said.leaving) return
    join.done(unavailable())
    pending.delete(key)
    // Sent as a state, too: the end of a watch alone may mean that the room has another node.
    join.said.leaving = leaving
    router.renewWatch(key)
    // A node that has not heard it by then has lost this gateway long ago.
    join.deadlineAt = now() + GHOST_MS
    ending.add(key)
    watchDeadlines()
  }

  /** @param key a join whose end the node has confirmed */
  function end(key: string) {
    forget(key)
    watchDeadlines()
  }

  /** @param key of a join */
  function forget(key: string) {
    pending.delete(key)
    ending.delete(key)
    if (joins.delete(key)) router.unwatch(key)
  }

  function refuse(key: string, join: Join, problem: Problem) {
    end(key)
    if (!join.isJoined) join.done(problem)
    else if (!join.said.leaving) join.onLost(problem)
  }

  /** @returns false if it is about something else */
  function onAnswer(answer: Answer, isGot: boolean): boolean {
    const about = readPresenceKey(answer.key)
    if (!about) return false
    const { room, tab } = about
    if (tab !== undefined) onJoinAnswer(answer)
    else if (isGot) reads.end(answer.key, membersIn(answer))
    else if (answer.type === 'members') onMembers(room, answer)
    else if (answer.type === 'presence') onPresence(room, answer)
    return true
  }

  function onJoinAnswer(answer: Answer) {
    const join = joins.get(answer.key)
    if (!join) return
    if (answer.type === 'failed') return refuse(answer.key, join, problemOf(answer))
    if (answer.type === 'left' && join.said.leaving) return end(answer.key)
    if (answer.type !== 'joined' || join.isJoined || join.said.leaving) return
    join.isJoined = true
    pending.delete(answer.key)
    watchDeadlines()
    join.done({ name: answer.name, claim: join.said.claim })
  }

  function onMembers(room: string, { epoch, rev, count, members }: MembersAnswer) {
    if (!watched.has(room)) return
    watched.set(room, { epoch, seq: rev })
    events.onMembers?.(room, members ? { rev, count, members } : { rev, count })
  }

  function onPresence(room: string, { epoch, rev, count, joined, left }: PresenceAnswer) {
    const position = watched.get(room)
    if (!position) return
    const isOther = epoch !== position.epoch
    if (!isOther && rev <= position.seq) return // a repeated request was answered twice
    if (isOther || rev > position.seq + 1) return router.renewWatch(membersKey(room))
    position.seq = rev
    events.onPresence?.(room, joined ? { rev, count, joined, left } : { rev, count })
  }

  const membersOf: PresenceBackbone['membersOf'] = (room, options) =>
    router.isAlive(room) ? reads.call(membersKey(room), options) : Promise.resolve(unavailable())

  return {
    join,
    leave,
    membersOf,
    watchMembers(room: string) {
      if (watched.has(room)) return
      watched.set(room, undefined)
      router.watch(membersKey(room))
    },
    unwatchMembers(room: string) {
      if (watched.delete(room)) router.unwatch(membersKey(room))
    },
    onAnswer,
    positionOf(key: string) {
      const about = readPresenceKey(key)
      return about && about.tab === undefined ? watched.get(about.room) : undefined
    },
    payloadOf: (key: string) => joins.get(key)?.said,
    payerOf: (key: string) => joins.get(key)?.payer,
    stop() {
      for (const [key, each] of joins) {
        joins.delete(key)
        each.done(unavailable())
      }
      pending.clear()
      for (let key = ending.take(); key !== undefined; key = ending.take());
      reads.stop()
      watchDeadlines()
    },
  }
}

function membersIn(end: Answer): Members | Problem {
  if (end.type === 'failed') return problemOf(end)
  if (end.type !== 'members') return unavailable()
  return end.members ? { count: end.count, members: end.members } : { count: end.count }
}
