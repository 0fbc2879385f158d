// Long work in short pieces, so that beats, results and gateways do not wait for 100,000 keys to be gone through.
import { TURN_MS } from '@keycast/service'

/** @typedef {(step: () => boolean) => void} InTurns */

/**
 * Returns a function that works step by step: at once, as many steps as a turn has room for; the rest in later ticks of
 * the wheel. `step` does a little and returns whether there is more. Anything may have changed between two steps.
 *
 * @param {object} deps
 * @param {Pick<import('./timer-wheel.ts').TimerWheel, 'set'>} deps.wheel
 * @param {() => number} deps.now monotonic, in milliseconds
 * @returns {InTurns}
 */
export function createInTurns({ wheel, now }) {
  return function inTurns(step) {
    const endsAt = now() + TURN_MS
    while (step()) {
      if (now() < endsAt) continue
      wheel.set(now(), () => inTurns(step))
      return
    }
  }
}
