// How long a generator process takes to end: it keeps to this, and the pool reckons with it.

/** An answer that has not come by then after the last request is lost. */
export const DRAIN_MS = 3_000

/** For closing frames to leave. */
export const CLOSE_MS = 5_000
