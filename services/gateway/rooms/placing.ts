// Finds where a session's stream of a room begins, and says so in `subscribed`. All or nothing: a client that resumes is
// given every message after its position, or is told that it is not.
import type { RoomsBackbone } from '@keycast/backbone'
import { errorMessage, isProblem, type Problem, type RoomStart } from '@keycast/protocol'
import { type Containment, noContainment } from '@keycast/service'
import type { Counts } from '../counts.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Gate } from '../gate/gate.ts'
import type { Watching } from '../presence/watching.ts'
import { type Announcement, createAnnouncement, subscribedTo } from './announcement.ts'
import type { Followers } from './followers.ts'
import type { Placing, RoomSubscription } from './room.ts'
import type { Tails } from './tails.ts'

export type PlacingOf = ReturnType<typeof createPlacing>

/** A client is told to ask again after this time while the journal is away. */
const RETRY_MS = 1_000

interface Deps {
  backbone: Pick<RoomsBackbone, 'isAvailable'>
  tails: Pick<Tails, 'seal' | 'covers'>
  pages: ReturnType<typeof import('./pages.ts').createPages>
  followers: Pick<Followers, 'remove'>
  gate: Pick<Gate, 'release'>
  watching: Pick<Watching, 'begin'>
  outbox: Pick<Outbox, 'send' | 'forget' | 'oweMessages' | 'close'>
  containment?: Pick<Containment, 'guard'>
  counts: Pick<Counts, 'resumes'>
}

export function createPlacing({
  backbone,
  tails,
  pages,
  followers,
  gate,
  watching,
  outbox,
  containment = noContainment,
  counts,
}: Deps) {
  /** Subscriptions whose part of the history could not be read. */
  const delayed = new Set<RoomSubscription>()

  /** Begins the stream of a subscription, or begins it anew. */
  function begin(subscription: RoomSubscription, start: RoomStart | undefined, announcement: Announcement) {
    forget(subscription)
    outbox.forget(subscription)
    subscription.gap = undefined
    subscription.placing = {
      start,
      announcement,
      isPlaced: false,
      isRecovered: false,
      isReading: false,
      isTold: false,
    }
    announcement.unknown++
    const { room } = subscription
    if (room.epoch !== undefined) place(subscription)
    else if (!backbone.isAvailable(room.key)) delay(subscription, unavailable)
  }

  /** Announces what is placed: the whole request was read. */
  function finish(announcement: Announcement) {
    announcement.unknown--
    announce(announcement)
  }

  /** Places a subscription, now that its room's position is known. */
  function place(subscription: RoomSubscription) {
    const { room, placing } = subscription
    if (!placing || placing.isPlaced || placing.isReading) return
    delayed.delete(subscription)
    // Later messages start a new segment. All subscriptions placed here then start at the same segment and share its
    // frames.
    tails.seal(room)
    const { reached } = room
    const { after, last } = placing.start ?? {}
    if (after) {
      if (after.epoch !== room.epoch) return settle(subscription, placing, reached, false)
      if (after.seq <= reached && tails.covers(room, after.seq)) return settle(subscription, placing, after.seq, true)
      return void read(readAfter, subscription, placing, after.seq)
    }
    if (last === undefined) return settle(subscription, placing, reached, false)
    const cursor = Math.min(reached, Math.max(reached - last, room.oldest - 1))
    if (tails.covers(room, cursor)) return settle(subscription, placing, cursor, false)
    return void read(readLast, subscription, placing, last)
  }

  const read = containment.guard(
    'session',
    (how: typeof readAfter | typeof readLast, subscription: RoomSubscription, placing: Placing, number: number) =>
      how(subscription, placing, number),
    (_, { session }) => outbox.close(session, 'internalError'),
  )

  async function readAfter(subscription: RoomSubscription, placing: Placing, seq: number) {
    const { room } = subscription
    placing.isReading = true
    const page = await pages.after(room, seq)
    if (subscription.placing !== placing) return
    placing.isReading = false
    if (isProblem(page)) return failed(subscription, placing, page)
    if (page.epoch !== room.epoch) return place(subscription)
    // Compares with the journal's head, not with the messages that came here: another gateway may be a moment ahead.
    const isWhole = seq + 1 >= page.oldest && seq <= page.newest
    settle(subscription, placing, isWhole ? seq : room.reached, isWhole)
  }

  async function readLast(subscription: RoomSubscription, placing: Placing, count: number) {
    const { room } = subscription
    placing.isReading = true
    const page = await pages.before(room, room.reached, count)
    if (subscription.placing !== placing) return
    placing.isReading = false
    if (isProblem(page)) return failed(subscription, placing, page)
    if (page.epoch !== room.epoch) return place(subscription)
    settle(subscription, placing, page.first - 1, false)
  }

  function failed(subscription: RoomSubscription, placing: Placing, problem: Problem) {
    // The journal began another history. This gateway will be told of it soon.
    if (problem.code === 'other_epoch') return settle(subscription, placing, subscription.room.reached, false)
    if (problem.retryAfterMs === undefined) return refuse(subscription, problem)
    delayed.add(subscription)
    delay(subscription, problem)
  }

  function settle(subscription: RoomSubscription, placing: Placing, cursor: number, isRecovered: boolean) {
    if (placing.start?.after) counts.resumes[isRecovered ? 'recovered' : 'not_recovered']++
    subscription.cursor = cursor
    placing.isPlaced = true
    placing.isRecovered = isRecovered
    const { announcement } = placing
    announcement.placed.push(subscription)
    announcement.unknown--
    announce(announcement)
  }

  function announce(announcement: Announcement) {
    const { session, id, unknown, placed } = announcement
    if (unknown > 0 || placed.length === 0) return
    announcement.placed = []
    outbox.send(session, { type: 'subscribed', id, keys: placed.map(subscribedTo) })
    for (const subscription of placed) {
      const isPresenceWanted = subscription.placing?.start?.presence === true
      subscription.placing = undefined
      const { cursor, room, answers } = subscription
      watching.begin(subscription, isPresenceWanted, id)
      if (cursor < room.reached || answers) outbox.oweMessages(subscription)
    }
  }

  /** The client is told, once, that its position is not known yet. The subscription stands. */
  function delay({ session, room, placing }: RoomSubscription, problem: Problem) {
    if (!placing || placing.isPlaced || placing.isTold) return
    placing.isTold = true
    const { announcement } = placing
    const { id } = announcement
    outbox.send(session, errorMessage(problem, { id, key: room.key, subscribed: true }))
    // The request's other rooms are announced without it. Its own announcement follows later.
    placing.announcement = createAnnouncement(session, id)
    finish(announcement)
  }

  /** Ends the subscription: this gateway cannot serve the room. */
  function refuse(subscription: RoomSubscription, problem: Problem) {
    const { session, room, placing } = subscription
    const id = placing && !placing.isTold ? placing.announcement.id : undefined
    end(subscription)
    gate.release(session, 'subscribe', room.key)
    outbox.send(session, errorMessage(problem, { id, key: room.key, subscribed: false }))
  }

  function end(subscription: RoomSubscription) {
    forget(subscription)
    followers.remove(subscription)
  }

  /** Drops an announcement that was not sent yet. */
  function forget(subscription: RoomSubscription) {
    const { placing } = subscription
    if (!placing) return
    delayed.delete(subscription)
    subscription.placing = undefined
    const { announcement, isPlaced } = placing
    if (isPlaced) announcement.placed = announcement.placed.filter(each => each !== subscription)
    else finish(announcement)
  }

  /** The room's stream continues elsewhere: a place that was found but not announced no longer counts. */
  function placeAnew(subscription: RoomSubscription) {
    const { placing } = subscription
    if (!placing) return
    if (placing.isPlaced) {
      const { announcement } = placing
      announcement.placed = announcement.placed.filter(each => each !== subscription)
      announcement.unknown++
      placing.isPlaced = false
    }
    place(subscription)
  }

  return {
    begin,
    finish,
    place,
    placeAnew,
    delay,
    refuse,
    end,

    /** Repeats the reads that failed. */
    retry() {
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
