// The wait after a failure: doubling, and jittered so that keys that failed together are not tried together.

/**
 * @typedef {object} Backoff one step: immutable, the next one comes from it
 * @property {number} duration milliseconds to wait
 * @property {() => Backoff} next
 */

export const BACKOFF_MS_MAX = 5_000

/**
 * Half of each step is fixed, so that a try is never made at once; half is random.
 *
 * @param {object} options
 * @param {number} options.initialMs upper end of the first step
 * @param {() => number} options.random 0 up to 1
 * @returns {() => Backoff} makes first steps
 */
export function createBackoff({ initialMs, random }) {
  /** @param {number} upperMs @returns {Backoff} */
  const step = upperMs => ({
    duration: (upperMs * (1 + random())) / 2,
    next: () => step(Math.min(upperMs * 2, BACKOFF_MS_MAX)),
  })
  return () => step(Math.min(initialMs, BACKOFF_MS_MAX))
}
