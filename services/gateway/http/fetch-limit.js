// How many may wait for values that have to be asked for, where no session counts its own.
import { errorCodes } from '@keycast/protocol'

/** @typedef {Pick<import('../keys/values.js').Values, 'refusal' | 'fresh' | 'want'>} ValuesAsked */

/** When to ask again: those who wait are told something within seconds. */
const RETRY_MS = 1_000

/**
 * The same values, of which no more than so many can be waited for at a time: further ones are answered
 * `too_many_waiting` at once.
 *
 * @param {ValuesAsked} values
 * @param {number} waitingMax
 * @returns {ValuesAsked}
 */
export function limitWaiting({ refusal, fresh, want }, waitingMax) {
  let waiting = 0
  return {
    refusal,
    fresh,
    async want(key, options) {
      if (waiting >= waitingMax) return { problem: tooManyWaiting() }
      waiting++
      // Never rejects.
      const outcome = await want(key, options)
      waiting--
      return outcome
    },
  }
}

/** @returns {import('../keys/entry.js').Problem} */
function tooManyWaiting() {
  const code = 'too_many_waiting'
  return { code, message: errorCodes[code], retryAfterMs: RETRY_MS, atMs: performance.now(), local: true }
}
