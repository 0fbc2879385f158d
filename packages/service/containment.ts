// Contains errors that no code foresaw: a programmer's. Such an error ends what it came with, a session or a link say,
// and nothing else. docs/decisions/0023-an-unforeseen-error-ends-what-it-came-with.md has the reasons.
import type { Log } from './log.ts'
import type { MetricMakers } from './metrics/metrics.ts'
import { by } from './metrics/samples.ts'

/** So many within {@link WINDOW_MS} are no accident: the process restarts, and logs no more of them. */
const ERRORS_MAX = 10

const WINDOW_MS = 60_000

/** Why the process restarts after a single error. */
const IN_DOUBT = 'an unforeseen error may have left half changed what others share'

export interface Containment {
  /**
   * Runs `handle`. If it throws, or its promise rejects, `end` is called with the same arguments: it ends what they came
   * with, and with that takes back what it did. If `end` throws as well, what others share may be half changed, and the
   * process restarts; likewise at once with `isForAll`, for what nobody's end takes back, as an answer that is applied
   * for all viewers. The result is `undefined` after an error.
   */
  guard: <A extends unknown[], R>(
    ended: string,
    handle: (...args: A) => R,
    end: (...args: A) => unknown,
    options?: { isForAll?: boolean },
  ) => (...args: A) => R | undefined
  /** Counts and logs an error whose catcher ends what it came with. `about`: further fields for the log. */
  caught: (ended: string, error: unknown, about?: object) => void
  /** Counts and logs an error that came with nothing that could be ended, and restarts the process. */
  fail: (error: unknown) => void
}

/** Contains nothing: for tests, which are to fail with the error. */
export const noContainment: Containment = {
  guard: (_, handle) => handle,
  caught(_, error) {
    throw error
  },
  fail(error) {
    throw error
  },
}

interface Options<E> {
  /** What errors may end, besides `process`: the labels of the metric. */
  ends: readonly E[]
  log: Pick<Log, 'error' | 'fatal'>
  now: () => number
}

/** Ends the process, for its supervisor to start it anew. `isInDoubt`: what others share may be half changed. */
type Restart = (why: string, isInDoubt: boolean) => void

export function createContainment<E extends string>({ ends, log, now }: Options<E>) {
  const counts: Record<string, number> = Object.fromEntries([...ends, 'process'].map(ended => [ended, 0]))
  /** When the last of them came, the latest last. */
  let recent: number[] = []
  let isRestarting = false
  let restart: Restart = () => {}

  const restartOnce: Restart = (why, isInDoubt) => {
    if (isRestarting) return
    isRestarting = true
    restart(why, isInDoubt)
  }

  const caught: Containment['caught'] = (ended, error, about) => {
    counts[ended]++
    const nowMs = now()
    recent = recent.filter(atMs => nowMs - atMs < WINDOW_MS)
    // A sender who has found such an error must not fill the disk with it.
    if (recent.length === ERRORS_MAX) return
    recent.push(nowMs)
    log.error({ err: error, ended, total: counts[ended], ...about }, 'an error that no code foresaw: please report it')
    if (recent.length === ERRORS_MAX) restartOnce(`${ERRORS_MAX} unforeseen errors within a minute`, false)
  }

  const fail: Containment['fail'] = error => {
    caught('process', error)
    restartOnce(IN_DOUBT, true)
  }

  const guard: Containment['guard'] = (ended, handle, end, { isForAll = false } = {}) => {
    const contain = (error: unknown, args: Parameters<typeof end>): undefined => {
      caught(ended, error)
      try {
        end(...args)
      } catch (failure) {
        fail(failure)
      }
      if (isForAll) restartOnce(IN_DOUBT, true)
      return undefined
    }

    return (...args) => {
      try {
        const result = handle(...args)
        if (!(result instanceof Promise)) return result
        return result.catch(error => contain(error, args)) as typeof result
      } catch (error) {
        return contain(error, args)
      }
    }
  }

  return {
    /** The number of errors by what they ended. */
    counts: counts as Readonly<Record<string, number>>,
    caught,
    fail,
    guard,

    onRestart(given: Restart) {
      restart = given
    },

    export({ read }: Pick<MetricMakers, 'read'>) {
      read(
        'unexpected_errors_total',
        'Errors that no code foresaw, by what they ended; process: they have the process restart.',
        () => by('ended', counts),
      )
    },
  }
}
