// The rooms that have something in the outbox, in the lanes of their backends: which may be told next, and which wait.
import { namespaceOf } from '@keycast/protocol'
import { type Calendar, createCalendar, createRecent, createUniqueQueue, type UniqueQueue } from '@keycast/service'
import { createPace, type Pace } from '@keycast/service/notify'

/**
 * `firstAt`: the time of its first message. `isBusy`: a call is under way, or it is being cut. `isNews`: something came
 * meanwhile. `aloneUpTo`: as far as this seq messages are told one by one.
 */
export interface Room {
  readonly key: string
  readonly lane: Lane
  firstAt: number
  failures: number
  isBusy: boolean
  isNews: boolean
  isGapAlone: boolean
  aloneUpTo: number
  calendarPage: number
}

/** The rooms of one namespace. */
export interface Lane {
  pace: Pace
  ready: UniqueQueue<Room>
}

export type Rooms = ReturnType<typeof createRooms>

export function createRooms({ now, random }: { now: () => number; random: () => number }) {
  /** Those that were told last, or cut, are last. */
  let rooms = createRecent<string, Room>()
  const lanes = new Map<string, Lane>()
  /** After a failure. */
  const waiting: Calendar<Room> = createCalendar()

  function laneOf(key: string): Lane {
    const name = namespaceOf(key)
    const lane = lanes.get(name) ?? { pace: createPace({ now, random }), ready: createUniqueQueue<Room>() }
    lanes.set(name, lane)
    return lane
  }

  /** Whether it was not forgotten meanwhile. */
  const isKnown = (room: Room) => rooms.get(room.key) === room

  const waits = (room: Room) => room.calendarPage !== Number.POSITIVE_INFINITY

  function enqueue(room: Room) {
    if (!room.isBusy && isKnown(room)) room.lane.ready.add(room)
  }

  return {
    lanes: () => lanes.values(),
    get: (key: string) => rooms.get(key),
    get size() {
      return rooms.size
    },
    /** Those that had a turn last come last. */
    *[Symbol.iterator]() {
      for (const { value: room } of rooms) yield room
    },

    add(key: string, firstAt: number): Room {
      const room: Room = {
        key,
        lane: laneOf(key),
        firstAt,
        failures: 0,
        isBusy: false,
        isNews: false,
        isGapAlone: false,
        aloneUpTo: 0,
        calendarPage: Number.POSITIVE_INFINITY,
      }
      rooms.set(key, room)
      enqueue(room)
      return room
    },

    enqueue,
    waits,

    /** @returns the next one that may be told */
    take(lane: Lane): Room | undefined {
      for (let room = lane.ready.take(); room; room = lane.ready.take()) if (!room.isBusy && isKnown(room)) return room
      return undefined
    },

    putOff(room: Room, ms: number) {
      if (isKnown(room)) waiting.schedule(room, now() + ms)
    },

    /** It had its turn. */
    putLast(room: Room) {
      if (isKnown(room)) rooms.set(room.key, room)
    },

    /** Those whose wait is over may be told. */
    sweep() {
      for (let room = waiting.takeDue(now()); room; room = waiting.takeDue(now())) enqueue(room)
    },

    /** None of the lane needs to wait any more. */
    callNow(lane: Lane) {
      for (const { value: room } of rooms) {
        if (!waits(room) || room.lane !== lane) continue
        waiting.cancel(room)
        enqueue(room)
      }
    },

    forget(room: Room) {
      waiting.cancel(room)
      if (isKnown(room)) rooms.delete(room.key)
    },

    clear() {
      rooms = createRecent()
    },
  }
}
