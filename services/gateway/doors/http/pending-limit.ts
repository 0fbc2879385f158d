// Limits how many HTTP requests wait at a time: for a value, for a part of a history, or for a backend's word on who may read.
// A session counts its own requests; a request over HTTP has no session, but each account has a share.
import type { Problem } from '@keycast/protocol'
import { createPlaces, type Payer } from '@keycast/service'

/** A refused request is to come back after this time: each one that waits is answered within seconds. */
const RETRY_MS = 1_000

const tooMany: Problem = { code: 'too_many_waiting', retryAfterMs: RETRY_MS }

export type PendingLimit = ReturnType<typeof createPendingLimit>

export function createPendingLimit(pendingMax: number) {
  const places = createPlaces(pendingMax)
  return {
    /** Counts before it begins the work. Past the limit it begins none, and gives the reason. */
    async wait<T>(
      payer: Payer | undefined,
      work: () => T | Promise<T>,
    ): Promise<{ result: T; problem?: undefined } | { result?: undefined; problem: Problem }> {
      const giveBack = places.take(payer, 1)
      if (!giveBack) return { problem: tooMany }
      try {
        return { result: await work() }
      } finally {
        giveBack()
      }
    },
  }
}
