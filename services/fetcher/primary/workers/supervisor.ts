// Keeps one worker process running in each place: starts another when one ended, and ends all of them at the end.
// watchdog.ts decides whether a running worker is of any use. workers.ts gives a lost worker's fetches to others
// (`giveUp`).

/**
 * @typedef {import('./processes.ts').WorkerProcess} WorkerProcess
 *
 * @typedef {ReturnType<typeof createSupervisor>} Supervisor
 *
 * `backoff`: while processes here do not live long.
 * @typedef {{ index: number, backoff: import('../timing/backoff.ts').Backoff | undefined }} Place
 */

/** A process that lived this long did not fail for its start: its successor starts at once. */
const LONG_LIFE_MS = 60_000

/** A worker may take this long to end by itself when told: it has nothing to finish. */
const DISCONNECT_MS = 1_000

/**
 * @param {object} deps
 * @param {number} deps.count places
 * @param {import('./processes.ts').Fork} deps.fork
 * @param {(place: number, process: WorkerProcess) => void} deps.onStart
 * @param {(process: WorkerProcess, how: { code: number | null, signal: string | null }) => void} deps.onEnd not called for
 *   those that {@link stop} ends
 * @param {() => import('../timing/backoff.ts').Backoff} deps.firstBackoff between restarts
 * @param {Pick<import('../timing/timer-wheel.ts').TimerWheel, 'set'>} deps.wheel
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createSupervisor({ count, fork, onStart, onEnd, firstBackoff, wheel, now }) {
  /** Processes that have not ended. @type {Set<WorkerProcess>} */
  const processes = new Set()
  let stopping = false
  let onAllEnded = () => {}

  function start() {
    for (let index = 0; index < count; index++) startIn({ index, backoff: undefined })
  }

  /** @param {Place} place */
  function startIn(place) {
    if (stopping) return
    const startedAt = now()
    const process = fork(how => {
      processes.delete(process)
      if (stopping) {
        if (processes.size === 0) onAllEnded()
        return
      }
      onEnd(process, how)
      replace(place, startedAt)
    })
    processes.add(process)
    onStart(place.index, process)
  }

  /** @param {Place} place @param {number} startedAt when the process that ended was */
  function replace(place, startedAt) {
    if (now() - startedAt >= LONG_LIFE_MS) {
      place.backoff = undefined
      return startIn(place)
    }
    place.backoff = place.backoff?.next() ?? firstBackoff()
    wheel.set(now() + place.backoff.duration, () => startIn(place))
  }

  /** Tells all processes to end, and kills those that do not. @returns {Promise<void>} once none is left */
  async function stop() {
    stopping = true
    if (processes.size === 0) return
    const ended = new Promise(resolve => {
      onAllEnded = () => resolve(undefined)
    })
    for (const process of processes) process.disconnect()
    const timer = setTimeout(() => {
      for (const process of processes) process.kill()
    }, DISCONNECT_MS)
    await ended
    clearTimeout(timer)
  }

  return { start, stop }
}
