// The log's lines for a backend that fails: at once for the first failure of a kind, then one a minute with how many there
// were. And a line once it works again.
import type { Log } from '@keycast/service'
import type { FailedResult } from '../worker-messages.ts'
import type { TimerWheel } from './timing/timer-wheel.ts'

const LINE_MS = 60_000

/** A backend that fails at times works again once there was no failure for so long. Failing keys are tried sooner. */
const QUIET_MS = 10_000

type Failure = Pick<FailedResult, 'code' | 'message' | 'status' | 'traceparent'>

interface Namespace {
  name: string
  origin: string
}

export type FailureLog = ReturnType<typeof createFailureLog>

/** Failures of a namespace that clients are told with the same code. `latest`: of those since the last line. */
interface Kind {
  count: number
  latest: Failure
}

/** The failures of a namespace until it works again. `endedAt`: when something succeeded, if nothing failed since. */
interface Trouble {
  failures: number
  beganAt: number
  failedAt: number
  endedAt: number | undefined
}

interface Deps {
  wheel: Pick<TimerWheel, 'set'>
  log: Pick<Log, 'warn' | 'info'>
  now: () => number
  /** The line. */
  says: string
  /** The line of the end, for {@link FailureLog.succeeded}. */
  saysAgain?: string
}

export function createFailureLog({ wheel, log, now, says, saysAgain }: Deps) {
  /** By namespace and code, while there was a line in the last minute. */
  const kinds = new Map<string, Kind>()
  /** By namespace; those of backends that work are not there. */
  const troubles = new Map<string, Trouble>()

  /** Must be told of each failure, and of the namespace that it belongs to. */
  function failed(namespace: Namespace, failure: Failure) {
    if (saysAgain !== undefined) noteTrouble(namespace)
    const { name } = namespace
    const id = `${name} ${failure.code}`
    const known = kinds.get(id)
    if (known) {
      known.count++
      known.latest = failure
      return
    }
    const kind = { count: 1, latest: failure }
    kinds.set(id, kind)
    write()

    function write() {
      const { code, message, status, traceparent } = kind.latest
      const about = {
        namespace: name,
        backend: namespace.origin,
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

  function noteTrouble({ name }: Namespace) {
    const trouble = troubles.get(name) ?? { failures: 0, beganAt: now(), failedAt: 0, endedAt: undefined }
    troubles.set(name, Object.assign(trouble, { failures: trouble.failures + 1, failedAt: now(), endedAt: undefined }))
  }

  /** Must be told of each success of a namespace while there is any trouble, but not while keys of it are failing. */
  function succeeded({ name, origin }: Namespace) {
    const trouble = troubles.get(name)
    if (!trouble) return
    trouble.endedAt ??= now()
    const { failures, beganAt, failedAt, endedAt } = trouble
    if (now() - failedAt < QUIET_MS) return
    troubles.delete(name)
    log.info({ namespace: name, backend: origin, failures, seconds: Math.ceil((endedAt - beganAt) / 1_000) }, saysAgain)
  }

  return { failed, succeeded, troubles: troubles as ReadonlyMap<string, unknown> }
}
