// Beats between processes: their period, the silence after which a peer is dead, and a timer that notices when its own
// process stood still. A process that was stopped or blocked has not heard its peers either, and must not count them
// dead.

/** Gateways, fetcher nodes and workers send a beat this often. */
export const BEAT_MS = 1_000

/** A peer silent for this long is dead: three beats, so that one late beat does no harm. */
export const SILENT_MS = 3 * BEAT_MS

/** A tick this late means that the process was stopped or blocked, not merely busy. */
const STANDSTILL_MS = 500

/** Calls `tick` each `ms`; returns what stops it. */
export type Every = (ms: number, tick: () => void) => () => void

export const everyInterval: Every = (ms, tick) => {
  const timer = setInterval(tick, ms)
  return () => clearInterval(timer)
}

interface Options {
  periodMs: number
  every: Every
  /** Monotonic, in milliseconds. */
  now: () => number
  tick: (standstillMs: number) => void
}

/**
 * Calls `tick` each `periodMs` with the time that this process stood still since the last call: 0 while it keeps up.
 *
 * @returns stops it
 */
export function everyMeasured({ periodMs, every, now, tick }: Options): () => void {
  let lastAt = now()
  return every(periodMs, () => {
    const lateMs = now() - lastAt - periodMs
    lastAt = now()
    tick(lateMs > STANDSTILL_MS ? lateMs : 0)
  })
}
