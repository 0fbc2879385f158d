// The time by which a log in LMDB forgets. It is the wall clock's, unless that has just jumped up: a clock that is wrong for
// a minute must not trim every room for good.

/** Further up is a jump. A clock that is corrected by less is followed. */
const JUMP_MS = 60_000

interface Deps {
  wallNow: () => number
  now: () => number
  /** The time that the log had last; `undefined`: whatever the wall clock says. */
  lastMs: number | undefined
  /** A jump must have stood for so long. */
  waitMs: number
  report: { warn: (fields: object, text: string) => void; info: (fields: object, text: string) => void }
}

/** To be read about once a second. Two readings count as one clock that ran on, however long ago the first was. */
export function createLogClock({ wallNow, now, lastMs = wallNow(), waitMs, report }: Deps) {
  let timeMs = lastMs
  let readAt = now()
  /** By the monotonic clock, since when the wall clock is ahead. */
  let aheadSince: number | undefined

  return {
    /** @returns in milliseconds since 1970 */
    read(): number {
      const at = now()
      const wallMs = wallNow()
      timeMs += at - readAt
      readAt = at
      const isJump = wallMs - timeMs > JUMP_MS
      if (isJump && aheadSince === undefined && waitMs > 0) {
        aheadSince = at
        report.warn(
          { from: new Date(timeMs).toISOString(), to: new Date(wallMs).toISOString(), waitMs },
          'the clock went forward, or the log was not in use: no message is removed for the time between until the clock has stood so for JOURNAL_SHORTEN_MS',
        )
      }
      if (isJump && aheadSince !== undefined && at - aheadSince < waitMs) return timeMs
      if (aheadSince !== undefined) {
        report.info({ time: new Date(wallMs).toISOString(), wasRight: isJump }, 'messages expire by the clock again')
      }
      aheadSince = undefined
      timeMs = wallMs
      return timeMs
    },

    /** How far the wall clock is ahead of the time that counts. */
    aheadMs: () => (aheadSince === undefined ? 0 : Math.max(0, wallNow() - timeMs - (now() - readAt))),
  }
}
