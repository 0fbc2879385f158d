// Beats between processes: their period, the silence after which a peer is dead, and the clock that silence is measured
// by. A process that was stopped or blocked has not heard its peers either, and must not count that time against them.

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
}

export type AwakeClock = ReturnType<typeof createAwakeClock>

/**
 * A clock that stands still while this process does: a standstill counts as one period. Forgiving all silence at each
 * late tick instead would keep a dead peer alive in a process that stalls again and again.
 */
export function createAwakeClock({ periodMs, every, now }: Options) {
  let awakeMs = 0
  /** While it runs, when it last ticked. */
  let tickedAt: number | undefined
  let standstillAt = Number.NEGATIVE_INFINITY
  let stopTicks = () => {}

  /** Of a standstill nobody knows before its late tick, and messages that came meanwhile may be read earlier. */
  const read = () => (tickedAt === undefined ? awakeMs : awakeMs + Math.min(now() - tickedAt, periodMs))

  return {
    /** In milliseconds; 0 before the first start. */
    now: read,

    /** The time, in milliseconds, since this process was last found to have stood still. */
    sinceStandstill: () => now() - standstillAt,

    /** `tick` is called each period, after the clock was moved on. */
    start(tick: () => void) {
      let lastAt = now()
      tickedAt = lastAt
      stopTicks = every(periodMs, () => {
        const at = now()
        const passedMs = at - lastAt
        const hasStoodStill = passedMs > periodMs + STANDSTILL_MS
        if (hasStoodStill) standstillAt = at
        awakeMs += hasStoodStill ? periodMs : passedMs
        lastAt = at
        tickedAt = at
        tick()
      })
    },

    /** Until it is started again it keeps its time. */
    stop() {
      stopTicks()
      awakeMs = read()
      tickedAt = undefined
    },
  }
}
