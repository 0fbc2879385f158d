// Logs how sessions begin and end, under the id that their client was told in welcome.
import type { Log as LogOf } from '@keycast/service'
import type { Session } from './session.ts'

export type Log = Pick<LogOf, 'debug' | 'warn'>

/** Ends that an operator should see: the client was at fault, or the gateway was short of memory. */
const remarkable = new Set(['abusive', 'slow', 'unfinished'])

/** At most so many are logged per period; the others are counted. A flood must not fill the disk. */
const WARNINGS_MAX = 10
const PERIOD_MS = 10_000

interface Deps {
  log?: Log
  now: () => number
}

export function createSessionLog({ log, now }: Deps) {
  let periodAtMs = now()
  let warnings = 0
  let unlogged = 0

  function opened({ id }: Session) {
    log?.debug({ session: id }, 'a session began')
  }

  /** @param reason as in the metric sessions_closed_total */
  function ended({ id }: Session, reason: string) {
    if (!remarkable.has(reason)) {
      log?.debug({ session: id, reason }, 'a session ended')
      return
    }
    const nowMs = now()
    if (nowMs - periodAtMs >= PERIOD_MS) {
      periodAtMs = nowMs
      warnings = 0
    }
    if (warnings >= WARNINGS_MAX) {
      unlogged++
      return
    }
    warnings++
    log?.warn({ session: id, reason, ...(unlogged > 0 && { unlogged }) }, 'a session was ended')
    unlogged = 0
  }

  return { opened, ended }
}
