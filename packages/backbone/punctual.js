// A timer that knows whether its own process kept up. A process that was stopped, or blocked, has not heard its peers
// either: silence then says nothing about them, so a late tick judges nobody.

/**
 * @typedef {(ms: number, tick: () => void) => () => void} Every calls `tick` each `ms`; returns what stops it
 */

/** @type {Every} */
export const everyInterval = (ms, tick) => {
  const timer = setInterval(tick, ms)
  return () => clearInterval(timer)
}

/**
 * Calls `tick` each `periodMs` with whether it came late, by half a period or more.
 *
 * @param {{ periodMs: number, every: Every, now: () => number, tick: (late: boolean) => void }} options
 * @returns {() => void} stops it
 */
export function everyPunctually({ periodMs, every, now, tick }) {
  let lastAt = now()
  return every(periodMs, () => {
    const late = now() - lastAt > periodMs * 1.5
    lastAt = now()
    tick(late)
  })
}
