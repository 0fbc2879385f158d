// How many sessions the process's limit of open files leaves room for. Past that limit not even a 503 can be sent: accept
// fails, and so do the name look-ups and connections that lead to the fetcher.
import { readFileSync } from 'node:fs'

/** Files besides those of sessions: listeners, HTTP connections of pollers and proxies, links to fetcher nodes, look-ups, the log. */
const OTHER_FILES = 500

/**
 * The limit in force, or `undefined` where there is none or the system does not say (Linux does, in proc_pid_limits(5)).
 *
 * @param {() => string} [read]
 */
export function openFilesMax(read = () => readFileSync('/proc/self/limits', 'utf8')) {
  let limits
  try {
    limits = read()
  } catch {
    return undefined
  }
  const soft = /^Max open files +(\d+)/m.exec(limits)?.[1]
  return soft === undefined ? undefined : Number(soft)
}

/**
 * @param {number} sessionsMax as set
 * @param {number | undefined} filesMax
 * @returns {number} as many of them as there may be
 */
export function sessionsWithin(sessionsMax, filesMax = Number.POSITIVE_INFINITY) {
  return Math.min(sessionsMax, Math.max(1, filesMax - OTHER_FILES))
}
