// A log in LMDB forgets messages past their age, rooms that were empty for long, and ids. Each call ends soon.
import { ROOM_ITSELF } from '../charges.ts'
import { EMPTY_MS, floorAbove, type Head, type Log, type Retention } from '../log.ts'
import { isEmpty } from '../room.ts'
import type { Commit, Write } from './commits.ts'
import type { Ids } from './ids.ts'
import type { KeptCharges } from './kept-charges.ts'
import type { Room, State, Tables } from './layout.ts'
import type { Rooms } from './rooms.ts'

/** Rooms that one call looks at: a longer call would hold the loop up. */
const ROOMS_AT_ONCE = 1_000

/** Writes of one call, roughly, for the same reason. */
const WRITES_MAX = 10_000

/** A clock that goes back by more has all rooms looked at: each was to be looked at by the time of before. */
const BACK_MS_MAX = 60_000

interface Deps {
  tables: Pick<Tables, 'rooms' | 'due'>
  state: State
  rooms: Rooms
  ids: Pick<Ids, 'expire'>
  charges: Pick<KeptCharges, 'take'>
  /** The log's clock. */
  clock: { read: () => number }
  openMs: () => number
  isOwned: () => Promise<boolean>
  /** @throws {LogBroken} where another process has taken the log */
  checkOwner: () => void
  commit: Commit
}

export function createExpiry({
  tables: { rooms: byName, due },
  state,
  rooms,
  ids,
  charges,
  clock,
  openMs,
  isOwned,
  checkOwner,
  commit,
}: Deps): Log['expire'] {
  /** Fewer where the disk is nearly full: a large commit wants more room than there is, and none would make some. */
  let writesMax = WRITES_MAX

  /** The walk over all rooms, in case their `history` changed since their last publish. */
  let walk = newWalk()
  let lastTime = Number.NEGATIVE_INFINITY

  async function expireIds() {
    const writes: Write[] = []
    const forgetIndex = ids.expire(openMs(), writes, writesMax)
    if (await commitPart(writes)) forgetIndex()
  }

  /** @returns false if the disk has no room for so much */
  async function commitPart(writes: Write[]) {
    if (writes.length === 0) return true
    const isKept = await commit(writes)
    writesMax = isKept ? Math.min(WRITES_MAX, writesMax * 2) : Math.ceil(writesMax / 4)
    return isKept
  }

  return async retentionOf => {
    if (!(await isOwned())) return { trimmed: [], more: false }
    const time = clock.read()
    const writes: Write[] = []
    const trimmed: { room: string; head: Head }[] = []
    const isEnough = () => writes.length >= writesMax
    const look = (name: string, room: Room) => {
      if (rooms.trim(room, time, writes, writesMax) > 0) trimmed.push({ room: name, head: rooms.head(name, room) })
    }

    if (retentionOf && walk.retentionOf !== retentionOf) walk = newWalk(retentionOf)
    else if (time < lastTime - BACK_MS_MAX) walk = newWalk(walk.retentionOf)
    lastTime = time
    let looked = 0
    /** What is written of these cannot be read yet. */
    const walked = new Set<string>()
    if (!walk.isOver) {
      for (const { key, value: room } of byName.getRange({ start: walk.from, limit: ROOMS_AT_ONCE })) {
        walk.from = key // this room first, at the next call
        if (isEnough()) break
        looked++
        walk.from += '\u0000'
        const retention = walk.retentionOf?.(key) ?? room.retention
        if (isDueInTime(room, time) && isSame(retention, room.retention)) continue
        room.retention = retention
        walked.add(key)
        look(key, room)
        rooms.put(key, room, time, writes)
      }
      walk.isOver = looked < ROOMS_AT_ONCE && !isEnough()
    }
    const pastDue = walk.isOver ? due.getRange({ end: [time, 0], limit: ROOMS_AT_ONCE }) : []
    for (const { value: name } of pastDue) {
      if (isEnough()) break
      looked++
      if (walked.has(name)) continue
      const room = byName.get(name) as Room
      rooms.unschedule(room, writes)
      const isPast = isEmpty(room) && time - room.oldestAt > EMPTY_MS
      look(name, room)
      if (isPast && !rooms.isWatched(name)) {
        writes.push(() => byName.remove(name))
        charges.take(room.id, ROOM_ITSELF, writes)
        state.counts.rooms--
        state.counts.floor = floorAbove(state.counts.floor, room.seq)
        continue
      }
      if (isPast) room.oldestAt = time // it is watched
      rooms.put(name, room, time, writes)
    }
    checkOwner()
    const more = looked >= ROOMS_AT_ONCE || isEnough() || !walk.isOver
    if (!(await commitPart(writes))) {
      walk = newWalk(walk.retentionOf)
      return { trimmed: [], more: writesMax > 1 }
    }
    await expireIds()
    return { trimmed, more }
  }
}

const newWalk = (retentionOf?: (room: string) => Retention | undefined) => ({ retentionOf, from: '', isOver: false })

const isDueInTime = ({ dueAt, ...room }: Room, time: number) =>
  dueAt !== undefined && dueAt <= time + (isEmpty(room) ? EMPTY_MS : room.retention.ageMs)

const isSame = (one: Retention, other: Retention) =>
  one.messages === other.messages && one.ageMs === other.ageMs && one.bytes === other.bytes
