// The wait after a failure: doubling, and jittered so that keys that failed together are not tried together.

/** One step: immutable, the next one comes from it. */
export interface Backoff {
  /** Milliseconds to wait. */
  duration: number
  /** @param maxMs no step is longer */
  next: (maxMs?: number) => Backoff
}

export const BACKOFF_MS_MAX = 5_000

interface Options {
  /** Upper end of the first step. */
  initialMs: number
  random: () => number
}

/**
 * Half of each step is fixed, so that a try is never made at once; half is random.
 *
 * @returns makes first steps
 */
export function createBackoff({ initialMs, random }: Options): () => Backoff {
  const step = (upperMs: number): Backoff => ({
    duration: (upperMs * (1 + random())) / 2,
    next: (maxMs = BACKOFF_MS_MAX) => step(Math.min(upperMs * 2, maxMs)),
  })
  return () => step(Math.min(initialMs, BACKOFF_MS_MAX))
}
