// Keeps the outbox within its bounds. Messages that no backend took for a day are dropped, and the oldest ones where there
// are too many. Each room keeps a gap in their place, which its backend is told.
import type { Position } from '@keycast/protocol'
import { createOnceAMinute, type Log as ServiceLog, type World } from '@keycast/service'
import { gapBytesOf, type Untold, untoldBytesOf } from '../log/log.ts'
import { type BatchedOutbox, TAKES_MAX } from './outbox.ts'
import type { Room, Rooms } from './rooms.ts'

/** A message that no backend took for so long is dropped. */
const AGE_MS_MAX = 24 * 3_600_000

/** Messages that are dropped at once: of each room, and bytes of all rooms. */
const CUT_MESSAGES_MAX = 500
const CUT_BYTES_MAX = 4 * 2 ** 20

/** Gaps are dropped for so long at a time: publishes wait for the commits. */
const DROP_MS = 200

/** Whether the next message of a room is to go. @param now by the log's clock */
type IsPast = (message: Untold, now: number, room: string) => boolean

interface Deps extends Pick<World, 'now' | 'wallNow'> {
  rooms: Rooms
  outbox: BatchedOutbox
  /** Whether a room's backend is told anything. */
  isTold: (room: string) => boolean
  bytesMax: number
  onDropped: (messages: number) => void
  report: Pick<ServiceLog, 'error'>
}

export function createBounds({ rooms, outbox, isTold, bytesMax, onDropped, report, now, wallNow }: Deps) {
  const isLogDue = createOnceAMinute(now)
  /** Of the rooms that are not being told nothing more can go: those that are make room themselves. */
  let isOver = false

  /**
   * Drops the first messages of a room, and leaves a gap to be named.
   *
   * @param room that is busy
   * @param among so many rooms that are cut at a time
   * @returns whether anything went
   */
  async function dropFirst(room: Room, why: 'age' | 'bytes', among: number, isPast: IsPast): Promise<boolean> {
    const { key } = room
    const { gap, messages, now } = await outbox.read(key, { limit: CUT_MESSAGES_MAX, bytesMax: CUT_BYTES_MAX / among })
    const left = messages.findIndex(message => !isPast(message, now, key))
    const dropped = left < 0 ? messages : messages.slice(0, left)
    room.firstAt = (left < 0 ? undefined : messages[left])?.at ?? wallNow()
    room.isGapAlone = dropped.length === messages.length && (gap !== undefined || dropped.length > 0)
    if (dropped.length === 0) return false
    const to = dropped[dropped.length - 1]
    const named = { from: gap?.from ?? positionOf(dropped[0]), to: positionOf(to) }
    await outbox.take({ room: key, upTo: to.seq, gap: isTold(key) ? named : undefined })
    onDropped(dropped.length)
    if (isLogDue(`dropped ${why}`)) {
      report.error(
        { room: key, why, messages: dropped.length },
        'messages that no backend took are dropped: their room is told a gap',
      )
    }
    return true
  }

  async function cut(room: Room, ...how: [why: 'age' | 'bytes', among: number, isPast: IsPast]): Promise<boolean> {
    room.isBusy = true
    try {
      return await dropFirst(room, ...how)
    } finally {
      room.isBusy = false
      rooms.putLast(room)
      // A room that waits after a failure goes on waiting.
      if (!rooms.waits(room)) rooms.enqueue(room)
    }
  }

  async function keepAge() {
    const past = outbox.now() - AGE_MS_MAX
    const isDue = ({ firstAt, isBusy, isGapAlone }: Room) => !isBusy && !isGapAlone && firstAt < past
    const due = [...rooms].filter(isDue)
    for (let start = 0; start < due.length; start += TAKES_MAX) {
      const part = due.slice(start, start + TAKES_MAX).filter(isDue)
      await Promise.all(part.map(room => cut(room, 'age', part.length, ({ at }, now) => now - at > AGE_MS_MAX)))
    }
  }

  /** Rooms that were not told for the longest lose first. Gaps stay as long as there is anything else. */
  async function keepBytes() {
    for (let isCut = true; isCut && outbox.bytes() > bytesMax; ) {
      const due = roomsToCut()
      const isPast = isExcess()
      isCut = (await Promise.all(due.map(room => cut(room, 'bytes', due.length, isPast)))).includes(true)
    }
    if (outbox.bytes() > bytesMax) await dropGaps()
    isOver = outbox.bytes() > bytesMax
  }

  /** As much is to go as is too much. */
  function isExcess(): IsPast {
    let excess = outbox.bytes() - bytesMax
    return (message, _, room) => {
      const isPast = excess > 0
      excess -= untoldBytesOf(room, message)
      return isPast
    }
  }

  /** As many as have what is too much, if all have as much, and go out at once. */
  function roomsToCut() {
    const bytes = outbox.bytes()
    const count = Math.min(TAKES_MAX, Math.ceil(((bytes - bytesMax) * rooms.size) / bytes))
    const due: Room[] = []
    for (const room of rooms) {
      if (due.length >= count) break
      if (!room.isBusy && !room.isGapAlone) due.push(room)
    }
    return due
  }

  /** Nothing but gaps, in more rooms than there is place for. */
  async function dropGaps() {
    const endsAt = now() + DROP_MS
    let dropped = 0
    // The excess may be messages of rooms that are being told: those rooms make room themselves.
    let gaps = 0
    for (const room of rooms) if (room.isGapAlone) gaps += gapBytesOf(room.key)
    let excess = Math.min(gaps, outbox.bytes()) - bytesMax
    while (now() < endsAt) {
      const due = gapsToDrop(excess)
      if (due.length === 0) break
      for (const { key } of due) excess -= gapBytesOf(key)
      await Promise.all(due.map(({ key }) => outbox.take({ room: key, upTo: 0 })))
      dropped += due.length
      for (const room of due) {
        // Else something came meanwhile.
        if (room.isGapAlone && !room.isBusy) rooms.forget(room)
      }
    }
    if (dropped > 0 && isLogDue('gap dropped'))
      report.error({ gaps: dropped }, 'gaps were dropped: backends will not hear that they missed messages')
  }

  /** As many as take what is too much, and go out at once. @param excess bytes of gaps */
  function gapsToDrop(excess: number) {
    const due: Room[] = []
    for (const room of rooms) {
      if (excess <= 0 || due.length === TAKES_MAX) break
      if (!room.isGapAlone || room.isBusy) continue
      due.push(room)
      excess -= gapBytesOf(room.key)
    }
    return due
  }

  return {
    async keep() {
      await keepAge()
      await keepBytes()
    },

    /** Has a room that is being told make room itself, where no other could. */
    async makeRoom(room: Room) {
      while (isOver && outbox.bytes() > bytesMax && (await dropFirst(room, 'bytes', 1, isExcess())));
    },
  }
}

const positionOf = ({ epoch, seq }: Position): Position => ({ epoch, seq })
