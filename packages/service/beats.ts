// Beats between processes: their period, the silence after which a peer is dead, and the clock that silence is measured
// by. A process that was stopped or blocked has not heard its peers either, and must not count that time against them.
import type { Every } from './world.ts'

/** Gateways, fetcher nodes and workers send a beat this often. */
export const BEAT_MS = 1_000

/** A peer silent for this long is dead: three beats, so that one late beat does no harm. */
export const SILENT_MS = 3 * BEAT_MS

/** A tick this late means that the process was stopped or blocked, not merely busy. */
const STANDSTILL_MS = 500

interface Options {
  periodMs: number
  every: Every
  now: () => number
  /** In milliseconds since 1970: it goes on while the machine sleeps, or is moved to another host. */
  wallNow?: () => number
  /** Called with the time, in milliseconds, for which this process is found to have stood still, at most. */
  onStandstill?: (ms: number) => void
}

/**
 * A clock that stands still while this process does: a standstill counts as one period. Forgiving all silence at each
 * late tick instead would keep a dead peer alive in a process that stalls again and again.
 */
export function createAwakeClock({ periodMs, every, now, wallNow = now, onStandstill = () => {} }: Options) {
  let awakeMs = 0
  /** While it runs, when it last ticked. */
  let tickedAt: number | undefined
  let tickedWallAt = 0
  /** Since then, as last read: the clock never goes back. */
  let readMs = 0
  let standstillAt = Number.NEGATIVE_INFINITY
  let stopTicks = () => {}

  function read(): number {
    const at = now()
    look(at)
    if (tickedAt !== undefined) readMs = at - tickedAt
    return awakeMs + readMs
  }

  /** Moves the clock on. */
  function tick(passedMs: number, at: number) {
    awakeMs += passedMs
    readMs = 0
    tickedAt = at
    tickedWallAt = wallNow()
  }

  /** Whether a standstill was found. @param at now: what follows must not have been read after another one */
  function look(at: number): boolean {
    if (tickedAt === undefined) return false
    const passedMs = at - tickedAt
    // A wall clock that was set forward looks the same.
    const sleptMs = Math.max(passedMs, wallNow() - tickedWallAt)
    if (sleptMs <= periodMs + STANDSTILL_MS) return false
    tick(Math.min(passedMs, Math.max(periodMs, readMs)), at)
    standstillAt = at
    onStandstill(sleptMs)
    return true
  }

  return {
    /** In milliseconds; 0 before the first start. */
    now: read,

    /** Notices a standstill now. Its late tick may come after messages that waited meanwhile were read. */
    look: () => look(now()),

    /** The time, in milliseconds, since this process was last found to have stood still. */
    sinceStandstill: () => now() - standstillAt,

    /** `onTick` is called each period, after the clock was moved on. */
    start(onTick: () => void) {
      tick(0, now())
      stopTicks = every(periodMs, () => {
        const at = now()
        if (!look(at)) tick(at - (tickedAt ?? at), at)
        onTick()
      })
    },

    /** Until it is started again it keeps its time. */
    stop() {
      stopTicks()
      awakeMs = read()
      readMs = 0
      tickedAt = undefined
    },
  }
}
