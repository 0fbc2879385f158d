// Paces busy rooms: messages that come soon after others leave with those that come by the end of a pause. A write to each
// viewer costs the same for one message as for fifty, so without a pause a busy room is all writes.
import type { World } from '@keycast/service'
import type { Room } from './room.ts'

/** A write takes some 10 µs: the pause leaves seven eighths of the time to other work. */
const PAUSE_MS_PER_VIEWER = 0.08

/** Below it a message waits longer for the timer than its write would cost. */
const PAUSE_MS_MIN = 1

/** Longer ones would be noticed. */
const PAUSE_MS_MAX = 25

export function pauseMsFor(viewers: number) {
  const ms = Math.min(PAUSE_MS_MAX, viewers * PAUSE_MS_PER_VIEWER)
  return ms < PAUSE_MS_MIN ? 0 : ms
}

interface Deps {
  /** Makes what came due to the room's sessions. */
  handOut: (room: Room) => void
  after: World['after']
}

/** @returns to be called when messages came: the first after a pause are handed out at once */
export function createPace({ handOut, after }: Deps): (room: Room) => void {
  /** Rooms that pause, and whether messages came meanwhile. */
  const paused = new Map<Room, boolean>()

  function onMessages(room: Room) {
    if (paused.has(room)) return void paused.set(room, true)
    handOut(room)
    const ms = pauseMsFor(room.subscriptions.length)
    if (ms === 0) return
    paused.set(room, false)
    after(ms, () => {
      const hasNews = paused.get(room)
      paused.delete(room)
      if (hasNews) onMessages(room)
    })
  }

  return onMessages
}
