// Paces busy rooms: messages that come soon after others leave with those that come by the end of a pause. A write to each
// viewer costs the same for one message as for fifty, so without a pause a busy room is all writes.

/** @typedef {import('./room.ts').Room} Room */

/** A write takes some 10 µs: the pause leaves seven eighths of the time to other work. */
const PAUSE_MS_PER_VIEWER = 0.08

/** Below it a message waits longer for the timer than its write would cost. */
const PAUSE_MS_MIN = 1

/** Longer ones would be noticed. */
const PAUSE_MS_MAX = 25

/** @param {number} viewers */
export function pauseMsFor(viewers) {
  const ms = Math.min(PAUSE_MS_MAX, viewers * PAUSE_MS_PER_VIEWER)
  return ms < PAUSE_MS_MIN ? 0 : ms
}

/**
 * @param {object} deps
 * @param {(room: Room) => void} deps.handOut makes what came due to the room's sessions
 * @param {(run: () => void, ms: number) => void} [deps.after]
 * @returns {(room: Room) => void} to be called when messages came: the first after a pause are handed out at once
 */
export function createPace({ handOut, after = afterUnlessEnded }) {
  /** Rooms that pause, and whether messages came meanwhile. @type {Map<Room, boolean>} */
  const paused = new Map()

  /** @param {Room} room */
  function onMessages(room) {
    if (paused.has(room)) return void paused.set(room, true)
    handOut(room)
    const ms = pauseMsFor(room.subscriptions.length)
    if (ms === 0) return
    paused.set(room, false)
    after(() => {
      const hasNews = paused.get(room)
      paused.delete(room)
      if (hasNews) onMessages(room)
    }, ms)
  }

  return onMessages
}

/** A gateway that stops has closed its sessions: nobody waits. @param {() => void} run @param {number} ms */
const afterUnlessEnded = (run, ms) => void setTimeout(run, ms).unref()
