// The wait after failures: a random time, so that thousands of clients do not come back at once.

/** The first wait is at most this long, doubled with each failure. */
const FIRST_MS = 1_000
const MAX_MS = 30_000

/** @param {() => number} random from 0 to 1 @param {number} failures before this one; two halves double the bound */
export const backoffMs = (random, failures) => random() * Math.min(MAX_MS, FIRST_MS * 2 ** (failures | 0))
