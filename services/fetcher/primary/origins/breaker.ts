// A circuit breaker (Nygard, "Release It!") for what one namespace asks of its backend. It opens when half of 20 or more
// tries within 10 s failed. While open it admits one probe a second, and the first probe that succeeds closes it. It sends
// nothing itself: recovery.ts does. Why it is our own: docs/decisions, 6.
import type { Result } from '../../worker-messages.ts'

/**
 * A fetch result's news about the backend: `good`, it works; `bad`, it does not; `neutral`, it answered, but this key
 * fails for a reason of its own (4xx, invalid content); `void`, nothing: the fetch was lost on our side.
 */
export type Verdict = 'good' | 'bad' | 'neutral' | 'void'

export function verdictOf(result: Result): Verdict {
  if (result.kind !== 'failed') return 'good'
  switch (result.code) {
    case 'backend_error':
    case 'backend_timeout':
    case 'backend_unreachable':
      return 'bad'
    case 'fetcher_timeout':
      return 'void'
    default:
      return 'neutral'
  }
}

export type Breaker = ReturnType<typeof createBreaker>

/** With fewer tries the share of failures says too little. */
const TRIES_MIN = 20

/** Share of bad tries at which it opens. */
const BAD_SHARE = 0.5

const WINDOW_MS = 10_000
const SLICES = 10
const SLICE_MS = WINDOW_MS / SLICES

/** Two tries that only test the backend are at least this far apart. */
export const PROBE_MS = 1_000

/** @param options `now`: monotonic, in milliseconds */
export function createBreaker({ now }: { now: () => number }) {
  /** The last ten seconds, a second each; `slice` says which second it counts. */
  const counts = Array.from({ length: SLICES }, () => ({ slice: -1, good: 0, bad: 0, failedFor: new Set<string>() }))
  let open = false
  let probing = false
  /** The time at which the last try began, or the breaker opened. */
  let restsSince = Number.NEGATIVE_INFINITY

  /**
   * A try that {@link admits} let through begins.
   *
   * @returns whether it is the probe; to be handed to {@link end}
   */
  function start(): boolean {
    restsSince = now()
    probing = open
    return open
  }

  /**
   * @param probe as {@link start} returned
   * @param who the viewer that the try was for: many failures of one count once, for the backend may have a reason that
   * is the viewer's own
   * @returns the change that it caused
   */
  function end(verdict: Verdict, probe: boolean, who?: string): 'opened' | 'closed' | undefined {
    if (probe) {
      probing = false
      if (verdict === 'bad' || verdict === 'void') return undefined
      open = false
      for (const count of counts) count.slice = -1
      return 'closed'
    }
    // The try began before the breaker opened: it says nothing about now.
    if (open) return undefined
    if (verdict === 'good') currentCount().good++
    if (verdict !== 'bad' || (who !== undefined && hasFailedFor(who))) return undefined
    const count = currentCount()
    count.bad++
    if (who !== undefined) count.failedFor.add(who)
    if (!failedTooOften()) return undefined
    open = true
    restsSince = now()
    return 'opened'
  }

  function currentCount() {
    const slice = Math.floor(now() / SLICE_MS)
    const count = counts[slice % SLICES]
    if (count.slice !== slice) Object.assign(count, { slice, good: 0, bad: 0, failedFor: new Set() })
    return count
  }

  const oldestSlice = () => Math.floor(now() / SLICE_MS) - SLICES + 1

  function hasFailedFor(who: string) {
    const oldest = oldestSlice()
    return counts.some(({ slice, failedFor }) => slice >= oldest && failedFor.has(who))
  }

  function failedTooOften() {
    const oldest = oldestSlice()
    let good = 0
    let bad = 0
    for (const count of counts) {
      if (count.slice < oldest) continue
      good += count.good
      bad += count.bad
    }
    return good + bad >= TRIES_MIN && bad >= BAD_SHARE * (good + bad)
  }

  /** The time of the next probe. Open or not, a try that began less than a second ago says as much as a probe. */
  function probeAt() {
    return restsSince + PROBE_MS
  }

  return {
    start,
    end,
    /** Whether a try may begin now. */
    admits: () => !open || (!probing && now() >= probeAt()),
    isOpen: () => open,
    probeAt,
    /** The time at which a refused key may be tried again. */
    retryAt: () => (probing ? Math.max(probeAt(), now() + PROBE_MS) : probeAt()),
  }
}
