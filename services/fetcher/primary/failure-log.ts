// A line in the log for a backend that fails: at once for the first failure of a kind, then one a minute with how many
// there were.
import type { Log } from '@keycast/service'
import type { FailedResult } from '../worker-messages.ts'
import type { TimerWheel } from './timing/timer-wheel.ts'

const LINE_MS = 60_000

type Failure = Pick<FailedResult, 'code' | 'message' | 'status' | 'traceparent'>

export type LogFailure = ReturnType<typeof createFailureLog>

/** Failures of a namespace that clients are told with the same code. `latest`: of those since the last line. */
interface Kind {
  count: number
  latest: Failure
}

interface Deps {
  wheel: Pick<TimerWheel, 'set'>
  log: Pick<Log, 'warn'>
  now: () => number
  /** The line. */
  says: string
}

export function createFailureLog({ wheel, log, now, says }: Deps) {
  /** By namespace and code, while there was a line in the last minute. */
  const kinds = new Map<string, Kind>()

  /** Must be told of each failure, and of the namespace that it belongs to. */
  return ({ name, origin }: { name: string; origin: string }, failed: Failure) => {
    const id = `${name} ${failed.code}`
    const known = kinds.get(id)
    if (known) {
      known.count++
      known.latest = failed
      return
    }
    const kind = { count: 1, latest: failed }
    kinds.set(id, kind)
    write()

    function write() {
      const { code, message, status, traceparent } = kind.latest
      const about = {
        namespace: name,
        backend: origin,
        code,
        status,
        reason: message,
        failures: kind.count,
        traceparent,
      }
      log.warn(about, says)
      kind.count = 0
      wheel.set(now() + LINE_MS, () => (kind.count > 0 ? write() : kinds.delete(id)))
    }
  }
}
