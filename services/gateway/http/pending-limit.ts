// Limits how many HTTP requests wait for the fetcher at a time: for a value, or for a backend's word on who may read. A
// session counts its own requests; a request over HTTP has no session.
import { createProblem, type Refusal } from '../keys/problem.ts'

/** A refused request is to come back after this time: each one that waits is answered within seconds. */
const RETRY_MS = 1_000

export type PendingLimit = ReturnType<typeof createPendingLimit>

/** @param now monotonic, in milliseconds */
export function createPendingLimit(pendingMax: number, now = () => performance.now()) {
  let pending = 0
  return {
    /** Counts before it begins the work. Past the limit it begins none, and gives the reason. */
    async wait<T>(
      work: () => T | Promise<T>,
    ): Promise<{ result: T; problem?: undefined } | { result?: undefined; problem: Refusal }> {
      if (pending >= pendingMax)
        return { problem: createProblem('too_many_waiting', now(), { retryAfterMs: RETRY_MS }) }
      pending++
      try {
        return { result: await work() }
      } finally {
        pending--
      }
    },
  }
}
