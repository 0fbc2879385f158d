// Finds where a session's stream of a room begins, which is then due to it. All or nothing: a client that resumes is given
// every message after its position, or is told that it is not.
import type { RoomsBackbone } from '@keycast/backbone'
import { type ControlMessage, isProblem, type Problem } from '@keycast/protocol'
import { type Containment, createRecent } from '@keycast/service'
import type { Counts } from '../../counts.ts'
import type { CloseCode } from '../../delivery/outbox.ts'
import type { Lasting } from '../../gate/gate.ts'
import type { Session } from '../../sessions/session.ts'
import { errorAbout, type Start, type Subscription } from '../topics.ts'
import type { CatchUpReads } from './catch-up-reads.ts'
import { MESSAGES, type Placing, type Room, type RoomSubscription } from './room.ts'

export type StreamStart = ReturnType<typeof createStreamStart>

/** A client is told to ask again after this time while the journal is away. */
const RETRY_MS = 1_000

/** A journal that beats may be too busy to say where a room stands: clients are told after this time, as where a read fails. */
const HEAD_MS = 5_000

interface Deps {
  backbone: Pick<RoomsBackbone, 'isAvailable'>
  tails: { seal(room: Room): void; covers(room: Room, cursor: number): boolean }
  pages: CatchUpReads
  followers: { remove(subscription: RoomSubscription): void }
  gate: { release(session: Session, act: Lasting, key: string): void }
  watching: { end(subscription: RoomSubscription): void }
  outbox: {
    send(session: Session, message: ControlMessage): void
    forget(subscription: Subscription): void
    owe(subscription: Subscription, bits: number): void
    close(session: Session, code: CloseCode): void
  }
  containment: Pick<Containment, 'guard'>
  counts: Pick<Counts, 'resumes'>
  now: () => number
}

export function createStreamStart({
  backbone,
  tails,
  pages,
  followers,
  gate,
  watching,
  outbox,
  containment,
  counts,
  now,
}: Deps) {
  /** Rooms whose position was not known, since when. */
  const unheard = createRecent<Room, number>()
  /** Subscriptions whose part of the history could not be read. */
  const delayed = new Set<RoomSubscription>()

  /** Begins the stream of a subscription, or begins it anew. */
  function begin(subscription: RoomSubscription, start: Start) {
    delayed.delete(subscription)
    outbox.forget(subscription)
    watching.end(subscription)
    subscription.gap = undefined
    subscription.placing = { start, head: undefined, isRecovered: false, isTold: false }
    const { topic: room } = subscription
    if (room.epoch !== undefined) place(subscription)
    else if (!backbone.isAvailable(room.key)) delay(subscription, unavailable)
    else if (!unheard.has(room)) unheard.set(room, now())
  }

  /** Places a subscription, now that its room's position is known. */
  function place(subscription: RoomSubscription) {
    const { topic: room, placing } = subscription
    if (!placing || placing.head !== undefined || subscription.reading === placing) return
    delayed.delete(subscription)
    // Later messages start a new segment. All subscriptions placed here then start at the same segment and share its
    // frames.
    tails.seal(room)
    const { reached } = room
    const { after, last } = placing.start
    if (after) {
      if (after.epoch !== room.epoch) return settle(subscription, placing, reached, false)
      if (after.seq <= reached && tails.covers(room, after.seq)) return settle(subscription, placing, after.seq, true)
      return void read(subscription, placing)
    }
    if (last === undefined) return settle(subscription, placing, reached, false)
    const cursor = Math.min(reached, Math.max(reached - last, room.oldest - 1))
    const from = tails.covers(room, cursor) ? cursor : sameAsBefore(room, cursor, last)
    if (from !== undefined) return settle(subscription, placing, from, false)
    void read(subscription, placing)
  }

  /** A read has a bound in bytes, too: repeated it would bring the same, and take the place of what others need. */
  function sameAsBefore(room: Room, cursor: number, count: number): number | undefined {
    const { lastRead } = room
    if (!lastRead || lastRead.count < count || lastRead.cursor < cursor || lastRead.cursor >= room.reached)
      return undefined
    return tails.covers(room, lastRead.cursor) ? lastRead.cursor : undefined
  }

  const read = containment.guard('session', readBeginning, ({ session }) => outbox.close(session, 'internalError'))

  async function readBeginning(subscription: RoomSubscription, placing: Placing) {
    // A client may begin anew as often as it likes: it has one read under way, after which it is placed.
    if (subscription.reading) return
    const { topic: room, session } = subscription
    const { reached } = room
    const { after, last = 0 } = placing.start
    subscription.reading = placing
    const page = await (after
      ? pages.after(room, after.seq, session.payer)
      : pages.before(room, reached, last, session.payer))
    subscription.reading = undefined
    if (subscription.placing !== placing) return place(subscription)
    if (isProblem(page)) return failed(subscription, placing, page)
    if (page.epoch !== room.epoch || (after && after.epoch !== room.epoch)) return place(subscription)
    if (after) {
      // Compares with the journal's head, too: another gateway may be a moment ahead. That of a read which others began
      // may be older than what came here since.
      const isWhole = after.seq + 1 >= page.oldest && after.seq <= Math.max(page.newest, room.reached)
      return settle(subscription, placing, isWhole ? after.seq : room.reached, isWhole)
    }
    const cursor = (page.first ?? reached + 1) - 1
    room.lastRead = { count: last, cursor }
    settle(subscription, placing, cursor, false)
  }

  function failed(subscription: RoomSubscription, placing: Placing, problem: Problem) {
    // The journal began another history. This gateway will be told of it soon.
    if (problem.code === 'other_epoch') return settle(subscription, placing, subscription.topic.reached, false)
    if (problem.retryAfterMs === undefined) return refuse(subscription, problem)
    delayed.add(subscription)
    delay(subscription, problem)
  }

  function settle(subscription: RoomSubscription, placing: Placing, cursor: number, isRecovered: boolean) {
    if (placing.start.after) counts.resumes[isRecovered ? 'recovered' : 'not_recovered']++
    subscription.cursor = cursor
    // The client may have received some of these messages through another gateway already.
    placing.head = Math.max(subscription.topic.reached, cursor)
    placing.isRecovered = isRecovered
    outbox.owe(subscription, MESSAGES)
  }

  /** The client is told, once, that its position is not known yet. The subscription stands. */
  function delay({ session, topic, placing }: RoomSubscription, problem: Problem) {
    if (!placing || placing.head !== undefined || placing.isTold) return
    placing.isTold = true
    outbox.send(session, errorAbout(session, topic.key, problem, placing.start.id))
  }

  /** Ends the subscription: this gateway cannot serve the room. */
  function refuse(subscription: RoomSubscription, problem: Problem) {
    const { session, topic, placing } = subscription
    const id = placing && !placing.isTold ? placing.start.id : undefined
    end(subscription)
    gate.release(session, 'subscribe', topic.key)
    outbox.send(session, errorAbout(session, topic.key, problem, id))
  }

  function end(subscription: RoomSubscription) {
    delayed.delete(subscription)
    followers.remove(subscription)
  }

  /** The room's stream continues elsewhere: a place that was found but not written no longer counts. */
  function placeAnew(subscription: RoomSubscription) {
    if (subscription.placing) subscription.placing.head = undefined
    outbox.forget(subscription)
    place(subscription)
  }

  return {
    begin,
    place,
    placeAnew,
    delay,
    refuse,
    end,

    /** Repeats the reads that failed; and tells those who wait for too long. */
    retry() {
      for (let first = unheard.oldest(); first && now() - first.value >= HEAD_MS; first = unheard.oldest()) {
        const { key: room } = first
        unheard.delete(room)
        if (room.epoch === undefined) for (const subscription of room.subscriptions) delay(subscription, late)
      }
      const waiting = [...delayed]
      delayed.clear()
      for (const subscription of waiting) place(subscription)
    },
  }
}

export const unavailable: Problem = {
  code: 'journal_unavailable',
  message: 'the journal cannot be reached: you are told where the room stands once it can',
  retryAfterMs: RETRY_MS,
}

const late: Problem = {
  ...unavailable,
  message: 'the journal has not said in time where the room stands: you are told once it has',
}
