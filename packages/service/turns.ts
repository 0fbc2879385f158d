// Long work in short turns, so that nothing else waits for it: no beat is late because 100,000 keys are being moved.

/**
 * One piece of work may keep everything else waiting for this long. A process has several, which may all have their
 * turn between two timers: together they take no 10 ms.
 */
export const TURN_MS = 2

interface Options {
  /** In milliseconds. */
  now: () => number
  /** Does a little; returns whether there is more to do. */
  step: () => boolean
}

/**
 * Work that is done step by step, as many steps in a turn of the event loop as fit into {@link TURN_MS}. Anything may
 * change between two turns, so a step uses only the present state.
 *
 * @returns `start` lets it begin in the next turn, unless it is under way
 */
export function createTurns({ now, step }: Options): { start: () => void } {
  let isScheduled = false

  function start() {
    if (isScheduled) return
    isScheduled = true
    setImmediate(run)
  }

  function run() {
    isScheduled = false
    const endsAt = now() + TURN_MS
    while (step()) if (now() >= endsAt) return start()
  }

  return { start }
}
