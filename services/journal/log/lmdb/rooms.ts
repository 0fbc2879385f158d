// The rooms of a log in LMDB: where each stands, what it holds, and when it is looked at next.
import { bytesOf, EMPTY_MS, type Head } from '../log.ts'
import { hasTooMuch, isEmpty } from '../room.ts'
import type { Write } from './commits.ts'
import type { Ids } from './ids.ts'
import type { KeptCharges } from './kept-charges.ts'
import { decodeWithId, type Room, type State, type Tables } from './layout.ts'

interface Deps {
  tables: Pick<Tables, 'rooms' | 'due' | 'messages'>
  state: State
  ids: Pick<Ids, 'forget'>
  charges: Pick<KeptCharges, 'take'>
  /** Milliseconds since 1970. */
  wallNow: () => number
}

export type Rooms = ReturnType<typeof createRooms>

export function createRooms({ tables: { rooms, due, messages }, state, ids, charges, wallNow }: Deps) {
  /** Of watched rooms, the seq that those who came first were told: the room may not be there, or be about to go. */
  const floors = new Map<string, number>()

  const get = (name: string): Room | undefined => rooms.get(name)

  /** Where the numbers of a room begin that is not there. */
  const floorOf = (name: string) => floors.get(name) ?? state.counts.floor

  function stored({ id }: Room, seq: number) {
    const found = messages.get([id, seq])
    return found && decodeWithId(found)
  }

  function unschedule(room: Room, writes: Write[]) {
    const { id, dueAt } = room
    if (dueAt === undefined) return
    room.dueAt = undefined
    writes.push(() => due.remove([dueAt, id]))
  }

  function weigh(room: Room, bytes: number) {
    room.bytes += bytes
    state.counts.bytes += bytes
  }

  return {
    get,
    stored,
    unschedule,
    weigh,

    floorOf,

    head(name: string, room = get(name)): Head {
      const { epoch } = state
      if (room) return { epoch, seq: room.seq, oldest: room.oldest, bytes: room.bytes, value: room.value }
      const seq = floorOf(name)
      return { epoch, seq, oldest: seq + 1, bytes: 0 }
    },

    /**
     * @param time the log's: a room whose first message has a later one is looked at by this; one that is still to be
     *   trimmed, at once
     * @param writes collects the room, and its place among those to be looked at
     */
    put(name: string, room: Room, time: number, writes: Write[]) {
      const isPastAt = Math.min(room.oldestAt, time) + (isEmpty(room) ? EMPTY_MS : room.retention.ageMs)
      const dueAt = hasTooMuch(room) ? 0 : isPastAt
      // One that is looked at earlier is given its next time then: a publish into a busy room writes no place.
      if (room.dueAt === undefined || dueAt < room.dueAt) {
        unschedule(room, writes)
        room.dueAt = dueAt
        writes.push(() => due.put([dueAt, room.id], name))
      }
      writes.push(() => rooms.put(name, room))
    },

    /**
     * @param room changed in place
     * @param time the log's
     * @param writes collects the removals
     * @returns the number of messages that went
     */
    trim(room: Room, time: number, writes: Write[], countMax: number): number {
      const { id, retention } = room
      const oldestBefore = room.oldest
      // The clock went back since: the age counts from now, or the message would stay until that time has come.
      room.oldestAt = Math.min(room.oldestAt, wallNow())
      /** The first message held, if it was read. */
      let first
      while (room.oldest <= room.seq && room.oldest - oldestBefore < countMax) {
        if (!hasTooMuch(room) && time - room.oldestAt <= retention.ageMs) break
        const seq = room.oldest
        first ??= stored(room, seq)
        // Kept and outdated in one batch: its write is among those to come, and so is its removal.
        if (!first) break
        const wasAheadMs = first.at - room.oldestAt
        weigh(room, -bytesOf(first))
        ids.forget(id, first, writes)
        charges.take(id, seq, writes)
        room.oldest++
        first = stored(room, room.oldest)
        // A message that is not stored yet is of this batch. With the time of the message before it, it would go too
        // early.
        if (!first) room.oldestAt = isEmpty(room) ? time : wallNow()
        else room.oldestAt = first.at > wallNow() ? first.at - wasAheadMs : first.at
        writes.push(() => messages.remove([id, seq]))
      }
      return room.oldest - oldestBefore
    },

    /** One that is watched is not forgotten: its numbers would begin anew above another floor. */
    isWatched: (name: string) => floors.has(name),
    watch(name: string) {
      if (!floors.has(name)) floors.set(name, get(name)?.seq ?? state.counts.floor)
    },
    unwatch: (name: string) => void floors.delete(name),
  }
}
