// How fast the backend of one namespace is called: many calls at a time while it takes them, and one now and then while it
// does not.
import { backoffMs } from '../backoff.ts'

/** Calls under way at a time. */
const CALLS_MAX = 16

/** So many failures in a row are no single call's fault. */
const FAILURES_MAX = 5

const PAUSE = { firstMs: 500, maxMs: 30_000 }

export type Pace = ReturnType<typeof createPace>

/** How long to wait after so many failures in a row. */
export const pauseMs = (failures: number, random: () => number) => backoffMs(failures, PAUSE, random)

export function createPace({ now, random }: { now: () => number; random: () => number }) {
  let underWay = 0
  let failures = 0
  let restsUntil = Number.NEGATIVE_INFINITY

  return {
    admits: () => underWay < (failures < FAILURES_MAX ? CALLS_MAX : 1) && now() >= restsUntil,

    start() {
      underWay++
    },

    /** @returns whether the backend came back: it had failed for long */
    end(isGood: boolean | undefined, retryAfterMs = 0): boolean {
      underWay--
      if (isGood === undefined) return false
      if (isGood) {
        const cameBack = failures >= FAILURES_MAX
        failures = 0
        restsUntil = Number.NEGATIVE_INFINITY
        return cameBack
      }
      failures++
      const restMs = failures < FAILURES_MAX ? 0 : pauseMs(failures - FAILURES_MAX + 1, random)
      restsUntil = Math.max(restsUntil, now() + Math.max(restMs, retryAfterMs))
      return false
    },

    isIdle: () => underWay === 0,
  }
}
