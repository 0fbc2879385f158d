// Logs how sessions begin and end, under the id that their client was told in welcome.

/**
 * @typedef {import('./session.ts').Session} Session
 * @typedef {Pick<import('@keycast/service').Log, 'debug' | 'warn'>} Log
 */

/** Ends that an operator should see: the client was at fault, or the gateway was short of memory. */
const remarkable = new Set(['abusive', 'slow', 'unfinished'])

/** At most so many are logged per period; the others are counted. A flood must not fill the disk. */
const WARNINGS_MAX = 10
const PERIOD_MS = 10_000

/**
 * @param {object} deps
 * @param {Log | undefined} deps.log
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createSessionLog({ log, now }) {
  let periodAtMs = now()
  let warnings = 0
  let unlogged = 0

  /** @param {Session} session */
  function opened({ id }) {
    log?.debug({ session: id }, 'a session began')
  }

  /** @param {Session} session @param {string} reason as in the metric sessions_closed_total */
  function ended({ id }, reason) {
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
