// The time that a worker was given. A worker that waits for a CPU is silent and does not hang: where the time since its
// last beat counted alone, a busy host would kill its workers, and their successors at their start.
import { readFileSync } from 'node:fs'

/** What the system says of a thread. `isRunnable`: it runs, or waits for a CPU. `cpuMs`: all that it was given. */
export interface ThreadState {
  isRunnable: boolean
  cpuMs: number
}

export interface WorkerClock {
  /** In milliseconds, as of the last `advance`. */
  readonly nowMs: number
  /** To be called often: the worker counts as waiting since the last call if it does so now. */
  advance: () => void
}

/** Linux counts CPU time for programs in hundredths of a second, whatever the kernel's own timer. */
const CLOCK_TICK_MS = 10

/**
 * Reads the main thread of a process: the one that runs JavaScript.
 *
 * @returns `undefined` where the system does not say, as on any but Linux
 */
export function readMainThread(pid: number | undefined): ThreadState | undefined {
  let stat
  try {
    stat = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // The state comes after a name of any form (proc(5)).
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [user, system] = fields.slice(10)
  return { isRunnable: state === 'R', cpuMs: (Number(user) + Number(system)) * CLOCK_TICK_MS }
}

interface Options {
  /** The state of the worker's main thread. */
  read: () => ThreadState | undefined
  /** By a clock that stands still while this process does. */
  now: () => number
}

/**
 * A clock that runs while its worker sleeps or is stopped, and while it runs on a CPU, and stands still while it waits for
 * one. Without a word of the system it runs all the time.
 */
export function createWorkerClock({ read, now }: Options): WorkerClock {
  let at = now()
  let cpuMs = read()?.cpuMs ?? 0

  const clock = {
    nowMs: 0,

    advance() {
      const thread = read()
      const passedMs = now() - at
      at += passedMs
      clock.nowMs += thread?.isRunnable ? Math.min(passedMs, thread.cpuMs - cpuMs) : passedMs
      cpuMs = thread?.cpuMs ?? cpuMs
    },
  }
  return clock
}
