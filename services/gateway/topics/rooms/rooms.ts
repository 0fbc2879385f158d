// Applies the journal's events of rooms to the sessions that follow them.
import type { MessageEvents, RoomsBackbone } from '@keycast/backbone'
import type { Problem } from '@keycast/protocol'
import type { JournalNamespace, World } from '@keycast/service'
import type { Counts } from '../../counts.ts'
import type { Session } from '../../sessions/session.ts'
import type { Kind, Start, Subscription } from '../topics.ts'
import type { CatchUp } from './catch-up.ts'
import type { DueMessages } from './due-messages.ts'
import { createPace } from './pace.ts'
import { createRoom, MESSAGES, type Room, type RoomSubscription } from './room.ts'
import type { RoomPlaces } from './room-places.ts'
import { type StreamStart, unavailable } from './stream-start.ts'
import type { Tails } from './tails.ts'

export type Rooms = ReturnType<typeof createRooms>

/** An operator's question waits for the journal for at most this long. */
const MEMBERS_MS = 1_000

/** Failed reads are repeated at this interval. */
const RETRY_MS = 1_000

const tooManyRooms: Problem = { code: 'capacity' }

interface Deps {
  /** By key. */
  rooms: Map<string, Room>
  write: DueMessages
  followers: { add(session: Session, room: Room): RoomSubscription }
  streamStart: StreamStart
  behind: CatchUp
  tails: Tails
  places: Pick<RoomPlaces, 'hasRoom'>
  backbone: Pick<RoomsBackbone, 'isAvailable' | 'ownerOf' | 'membersOf' | 'deleteMessages'>
  outbox: { owe(subscription: Subscription, bits: number): void }
  counts: Pick<Counts, 'gaps'>
  now: () => number
  after: World['after']
}

export function createRooms({
  rooms,
  write,
  followers,
  streamStart,
  behind,
  tails,
  places,
  backbone,
  outbox,
  counts,
  now,
  after,
}: Deps) {
  let triedAtMs = now()

  const onHead: MessageEvents['onHead'] = (key, { epoch, oldest, after }) => {
    const room = rooms.get(key)
    if (!room) return
    if (room.epoch === undefined) {
      room.epoch = epoch
      room.reached = after
    }
    room.oldest = Math.max(room.oldest, oldest)
    for (const subscription of room.subscriptions) streamStart.place(subscription)
  }

  const onMessages: MessageEvents['onMessages'] = (key, { oldest = 1, messages }) => {
    const room = rooms.get(key)
    if (!room) return
    room.oldest = Math.max(room.oldest, oldest)
    if (messages.some(({ deletes }) => deletes)) {
      room.deletions++
      tails.forget(room)
    }
    tails.append(room, messages)
    pace(room)
  }

  const pace = createPace({ handOut, after })

  function handOut({ subscriptions }: Room) {
    // The loop every fan-out runs once per subscriber: no iterator, no closure.
    for (let index = 0; index < subscriptions.length; index++) {
      const subscription = subscriptions[index]
      if (subscription.placing === undefined && !subscription.isBehind) outbox.owe(subscription, MESSAGES)
    }
  }

  const onGap: MessageEvents['onGap'] = (key, { epoch, seq, oldest, reason }) => {
    const room = rooms.get(key)
    if (!room) return
    const isOtherEpoch = room.epoch !== epoch
    room.epoch = epoch
    room.reached = seq
    room.oldest = oldest
    room.floor = oldest
    tails.forget(room)
    for (const subscription of room.subscriptions) {
      if (subscription.placing) {
        streamStart.placeAnew(subscription)
        continue
      }
      // It came from a gateway that is further, and misses nothing.
      if (!isOtherEpoch && reason === 'trimmed' && subscription.cursor + 1 >= oldest) {
        outbox.owe(subscription, MESSAGES)
        continue
      }
      counts.gaps[reason]++
      subscription.gap = reason
      subscription.cursor = seq
      // These messages belong to a history that has ended: no seq of the new one is theirs, so their answers wait no
      // longer.
      if (isOtherEpoch) for (const held of subscription.answers ?? []) held.seq = 0
      outbox.owe(subscription, MESSAGES)
    }
  }

  const onFailed: MessageEvents['onFailed'] = (key, problem) => {
    // A copy: those that are refused leave the room.
    for (const subscription of [...(rooms.get(key)?.subscriptions ?? [])]) {
      if (problem.retryAfterMs === undefined) streamStart.refuse(subscription, problem)
      else streamStart.delay(subscription, problem)
    }
  }

  /** The set of journals that answer may have changed. */
  function onRouted() {
    for (const room of rooms.values()) {
      if (room.epoch !== undefined || backbone.isAvailable(room.key)) continue
      for (const subscription of room.subscriptions) streamStart.delay(subscription, unavailable)
    }
    retry()
  }

  function retry() {
    triedAtMs = now()
    streamStart.retry()
    behind.retry()
  }

  /** The start that lets a stream resume where it is now. */
  function position({ topic: room, cursor, gap, placing: unplaced, members }: RoomSubscription): Start {
    if (unplaced) return unplaced.start
    // The cursor is past a gap that the client was not told of. A stream that resumed there would look whole.
    const after = gap === undefined ? { epoch: room.epoch as string, seq: cursor } : undefined
    return { version: undefined, after, presence: members !== undefined, isPaused: true }
  }

  const kind: Kind = {
    name: 'room',
    join: (session, room: Room, start) => streamStart.begin(followers.add(session, room), start),
    begin: streamStart.begin,
    position,
    write,
    end: streamStart.end,
  }

  return {
    events: { onHead, onMessages, onGap, onFailed, onRouted },

    kind,

    /** @param key of a room of that namespace, and passed the gate */
    open(session: Session, key: string, namespace: JournalNamespace): Room | Problem {
      return rooms.get(key) ?? (places.hasRoom(session, 1) ? createRoom(key, namespace, kind) : tooManyRooms)
    },

    sweep() {
      for (const room of rooms.values()) tails.sweep(room)
      if (now() - triedAtMs >= RETRY_MS) retry()
    },

    /**
     * Everything known of a room here, for an operator who asks why a message did not arrive.
     *
     * @param key of a room
     */
    describe(key: string) {
      const room = rooms.get(key)
      const owner = backbone.ownerOf(key)
      const subscriptions = room?.subscriptions ?? []
      return {
        key,
        owner: { node: owner.node ?? null, alive: owner.alive },
        watched: room !== undefined,
        sessionsSubscribed: subscriptions.length,
        sessionsPlacing: subscriptions.filter(({ placing }) => placing).length,
        sessionsBehind: subscriptions.filter(({ placing, cursor, topic: { reached } }) => !placing && cursor < reached)
          .length,
        position: room?.epoch === undefined ? undefined : { epoch: room.epoch, seq: room.reached },
        oldest: room?.epoch === undefined ? undefined : room.oldest,
        tail: room && tails.describe(room),
      }
    },

    /** The room's members, as the journal answers now. @param key of a room */
    membersOf: (key: string) => backbone.membersOf(key, { deadlineMs: MEMBERS_MS }),

    deleteMessages: backbone.deleteMessages,

    stats: () => ({ rooms: rooms.size, tailBytes: tails.bytes() }),
  }
}
