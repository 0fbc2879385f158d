// Time, chance and waiting. A main makes the one world of its process, and tests make their own: nothing else reads a
// clock, sets a timer or draws a number. world.test.ts holds that.
import { randomBytes } from 'node:crypto'

/** Calls `tick` each `ms`; returns what stops it. */
export type Every = (ms: number, tick: () => void) => () => void

export interface World {
  /** Monotonic, in milliseconds. */
  readonly now: () => number
  /** Monotonic, in milliseconds, and the same in all processes of a host. */
  readonly hostNow: () => number
  /** In milliseconds since 1970. */
  readonly wallNow: () => number
  /** From 0 up to 1, which it never is. */
  readonly random: () => number
  readonly randomBytes: (size: number) => Buffer
  readonly every: Every
  /** Calls `run` once, after `ms`, or after 24 days where that is longer; returns what keeps it from that. */
  readonly after: (ms: number, run: () => void) => () => void
  /** Calls `run` in the next turn of the event loop: what came in during this one was read by then. */
  readonly turn: (run: () => void) => void
}

/** Node takes a longer time for none at all, and runs at once. */
const TIMER_MS_MAX = 2 ** 31 - 1

export const realWorld: World = Object.freeze({
  now: performance.now.bind(performance),
  // Not by `performance.timeOrigin`, which goes with the wall clock: it may have been set between two starts.
  hostNow: () => Number(process.hrtime.bigint()) / 1e6,
  wallNow: Date.now,
  random: Math.random,
  randomBytes: (size: number) => randomBytes(size),
  every(ms: number, tick: () => void) {
    const timer = setInterval(tick, ms)
    return () => clearInterval(timer)
  },
  after(ms: number, run: () => void) {
    const timer = setTimeout(run, Math.min(ms, TIMER_MS_MAX))
    return () => clearTimeout(timer)
  },
  turn: setImmediate as World['turn'],
})
