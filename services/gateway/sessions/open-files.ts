// The number of sessions that the process's limit of open files allows. Past that limit not even a 503 can be sent:
// accept fails, and so do the name look-ups and connections that lead to the fetcher.
import { readFileSync } from 'node:fs'

/** Files besides those of sessions: listeners, HTTP connections of pollers and proxies, links to fetcher nodes, look-ups, the log. */
const OTHER_FILES = 500

/**
 * The limit in force, or `undefined` if there is none or the system does not say (Linux does, in proc_pid_limits(5)).
 */
export function openFilesMax(read: () => string = () => readFileSync('/proc/self/limits', 'utf8')) {
  let limits
  try {
    limits = read()
  } catch {
    return undefined
  }
  const soft = /^Max open files +(\d+)/m.exec(limits)?.[1]
  return soft === undefined ? undefined : Number(soft)
}

/** Connections that are no sessions: all requests that may wait for the fetcher, and idle ones. At 20 KB each, 100 MB. */
const HTTP_CONNECTIONS_MAX = 5_000

/** Of the other files, those that HTTP connections must leave. */
const NOT_HTTP_FILES = 100

/**
 * The limit on connections that are no sessions.
 *
 * @param sessionsMax as there may be
 */
export function httpConnectionsWithin(sessionsMax: number, filesMax: number | undefined = Number.POSITIVE_INFINITY) {
  return Math.min(HTTP_CONNECTIONS_MAX, Math.max(NOT_HTTP_FILES, filesMax - sessionsMax - NOT_HTTP_FILES))
}

/**
 * @param sessionsMax the setting
 * @returns the limit that the open files allow
 */
export function sessionsWithin(sessionsMax: number, filesMax: number | undefined = Number.POSITIVE_INFINITY): number {
  return Math.min(sessionsMax, Math.max(1, filesMax - OTHER_FILES))
}
