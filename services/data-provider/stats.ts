// Counts requests by route and path, and how they were answered. Tests of coalescing read the counts.

/** So many paths are counted one by one; requests for further ones only count for their route. */
const PATHS_MAX = 100_000

/** So many last requests are kept one by one. */
const LOG_MAX = 10_000

/** 200 with content; 304; an error or garbage. */
type Outcome = 'full' | 'notModified' | 'failed'

/**
 * `total` rises when a request arrives, the others when it is answered. The difference is under way, hangs, or was
 * given up by the client.
 */
type Counts = { total: number } & Record<Outcome, number>

/** `atMs`: since 1970; null while unanswered. */
interface LogEntry {
  path: string
  atMs: number
  status: number | null
}

/** @param now milliseconds since 1970 */
export function createStats(now: () => number) {
  const routes = new Map<string, Counts>()
  const paths = new Map<string, Counts>()
  let log: LogEntry[] = []
  let concurrency = 0
  let concurrencyMax = 0

  return {
    /** One request arrived. */
    arrived(route: string, path: string) {
      const counted = [
        countsOf(routes, route),
        ...(paths.size < PATHS_MAX || paths.has(path) ? [countsOf(paths, path)] : []),
      ]
      for (const counts of counted) counts.total += 1
      const entry: LogEntry = { path, atMs: now(), status: null }
      log.push(entry)
      // Cut in portions: shifting one by one would move the whole list each time.
      if (log.length >= 2 * LOG_MAX) log = log.slice(-LOG_MAX)
      concurrency += 1
      concurrencyMax = Math.max(concurrencyMax, concurrency)

      return {
        answered(outcome: Outcome, status: number) {
          for (const counts of counted) counts[outcome] += 1
          entry.status = status
        },
        /** The response was sent, or its connection is gone. */
        ended() {
          concurrency -= 1
        },
      }
    },

    concurrency: () => concurrency,

    read: (options: { log: boolean }) => ({
      requests: Object.fromEntries(routes),
      byKey: Object.fromEntries(paths),
      concurrency,
      concurrencyMax,
      ...(options.log ? { log: log.slice(-LOG_MAX) } : {}),
    }),

    /** Counts from zero again. Requests under way stay counted in `concurrency`. */
    reset() {
      routes.clear()
      paths.clear()
      log = []
      concurrencyMax = concurrency
    },
  }
}

function countsOf(map: Map<string, Counts>, name: string) {
  const counts = map.get(name) ?? { total: 0, full: 0, notModified: 0, failed: 0 }
  map.set(name, counts)
  return counts
}
