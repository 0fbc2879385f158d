// Keeps one worker process running in each place: starts another when one ended, and ends all of them at the end.
// watchdog.ts decides whether a running worker is of any use. workers.ts gives a lost worker's fetches to others
// (`giveUp`).
import { backoffMs, type World } from '@keycast/service'
import type { Fork, WorkerProcess } from './processes.ts'

export type Supervisor = ReturnType<typeof createSupervisor>

/** `failures`: processes in a row that did not live long here. */
interface Place {
  index: number
  failures: number
}

/** A process that lived this long did not fail for its start: its successor starts at once. */
const LONG_LIFE_MS = 60_000

/** A process that did not is replaced after this. */
const RESTART = { firstMs: 250, maxMs: 5_000 }

/** A worker may take this long to end by itself when told: it has nothing to finish. */
const DISCONNECT_MS = 1_000

interface Deps {
  /** Places. */
  count: number
  fork: Fork
  onStart: (place: number, process: WorkerProcess) => void
  /** Not called for those that {@link stop} ends. */
  onEnd: (process: WorkerProcess, how: { code: number | null; signal: string | null }) => void
  wheel: { set: (atMs: number, run: () => void) => unknown }
  after: World['after']
  now: () => number
  random: () => number
}

export function createSupervisor({ count, fork, onStart, onEnd, wheel, after, now, random }: Deps) {
  /** Processes that have not ended. */
  const processes = new Set<WorkerProcess>()
  let stopping = false
  let onAllEnded = () => {}

  function start() {
    for (let index = 0; index < count; index++) startIn({ index, failures: 0 })
  }

  function startIn(place: Place) {
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

  /** @param startedAt when the process that ended was */
  function replace(place: Place, startedAt: number) {
    if (now() - startedAt >= LONG_LIFE_MS) {
      place.failures = 0
      return startIn(place)
    }
    wheel.set(now() + backoffMs(++place.failures, RESTART, random), () => startIn(place))
  }

  /** Tells all processes to end, and kills those that do not. @returns once none is left */
  async function stop(): Promise<void> {
    stopping = true
    if (processes.size === 0) return
    const ended = new Promise<void>(resolve => {
      onAllEnded = resolve
    })
    for (const process of processes) process.disconnect()
    const cancel = after(DISCONNECT_MS, () => {
      for (const process of processes) process.kill()
    })
    await ended
    cancel()
  }

  return { start, stop }
}
