// Faults of the simulated backend: a test sets them while it runs, and clears them again.

/**
 * @typedef {object} FaultSettings
 * @property {number} latencyMs shortest time an answer takes
 * @property {number} jitterMs longest time added at random, evenly spread
 * @property {number} hangRate share of requests never answered
 * @property {number} errorRate share of the others answered with 500
 * @property {number} garbageRate share of the rest answered with JSON that does not parse
 *
 * @typedef {'hang' | 'error' | 'garbage' | 'none'} Fault
 */

/** The largest value of each setting; the smallest is 0. A minute is longer than any time-out. @type {Record<keyof FaultSettings, number>} */
const largest = { latencyMs: 60_000, jitterMs: 60_000, hangRate: 1, errorRate: 1, garbageRate: 1 }

/**
 * @param {FaultSettings} initial
 * @param {() => number} [random] from 0 to below 1
 */
export function createFaults(initial, random = Math.random) {
  const current = { ...initial }

  return {
    current: () => ({ ...current }),

    /**
     * Changes some of the settings: all of those given, or none.
     *
     * @param {unknown} given the settings in the request
     * @returns {string | undefined} the reason why they cannot be used
     */
    change(given) {
      if (typeof given !== 'object' || given === null)
        return 'send a JSON object with some of the faults, as in {"errorRate":0.5}'
      for (const [name, value] of Object.entries(given)) {
        if (!isFault(name)) return `${name} is no fault; there are ${Object.keys(largest).join(', ')}`
        const fits = typeof value === 'number' && value >= 0 && value <= largest[name]
        if (!fits) return `${name} must be a number from 0 to ${largest[name]}`
      }
      Object.assign(current, given)
      return undefined
    },

    /** Draws what happens to one request. @returns {{ delayMs: number, fault: Fault }} */
    draw() {
      return { delayMs: current.latencyMs + current.jitterMs * random(), fault: drawFault() }
    },
  }

  /** @returns {Fault} */
  function drawFault() {
    if (random() < current.hangRate) return 'hang'
    if (random() < current.errorRate) return 'error'
    if (random() < current.garbageRate) return 'garbage'
    return 'none'
  }
}

/** @param {string} name @returns {name is keyof FaultSettings} */
function isFault(name) {
  return Object.hasOwn(largest, name)
}
