// Long work in short turns, so that nothing else waits for it: no beat is late because 100,000 keys are being moved.

/**
 * One piece of work may keep everything else waiting for this long. A process has several, which may all have their
 * turn between two timers: together they take no 10 ms.
 */
export const TURN_MS = 2

/**
 * What clients and nodes send, and what they are sent, may each keep all else waiting for this long. The same for all: what
 * has less falls ever further behind while another has a backlog.
 */
export const FLOW_MS = 10

/**
 * Does work step by step, as many steps as fit into {@link TURN_MS}, one at least.
 *
 * @param step does a little; returns whether there is more to do. Anything may change between two turns, so a step uses
 *   only the present state
 * @returns whether there is more to do
 */
export function workTurn(now: () => number, step: () => boolean): boolean {
  const endsAt = now() + TURN_MS
  while (step()) if (now() >= endsAt) return true
  return false
}

interface Options {
  /** In milliseconds. */
  now: () => number
  /** Calls it in the next turn of the event loop. */
  turn: (run: () => void) => void
  step: () => boolean
}

/**
 * Work that is done turn by turn of the event loop: see {@link workTurn}.
 *
 * @returns `start` lets it begin in the next turn, unless it is under way
 */
export function createTurns({ now, turn, step }: Options): { start: () => void } {
  let isScheduled = false

  function start() {
    if (isScheduled) return
    isScheduled = true
    turn(run)
  }

  function run() {
    isScheduled = false
    if (workTurn(now, step)) start()
  }

  return { start }
}
