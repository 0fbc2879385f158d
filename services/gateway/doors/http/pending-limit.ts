// Limits how many HTTP requests wait for the fetcher at a time: for a value, or for a backend's word on who may read. A
// session counts its own requests; a request over HTTP has no session.
import type { Problem } from '@keycast/protocol'

/** A refused request is to come back after this time: each one that waits is answered within seconds. */
const RETRY_MS = 1_000

const tooMany: Problem = { code: 'too_many_waiting', retryAfterMs: RETRY_MS }

export type PendingLimit = ReturnType<typeof createPendingLimit>

export function createPendingLimit(pendingMax: number) {
  let pending = 0
  return {
    /** Counts before it begins the work. Past the limit it begins none, and gives the reason. */
    async wait<T>(
      work: () => T | Promise<T>,
    ): Promise<{ result: T; problem?: undefined } | { result?: undefined; problem: Problem }> {
      if (pending >= pendingMax) return { problem: tooMany }
      pending++
      try {
        return { result: await work() }
      } finally {
        pending--
      }
    },
  }
}
