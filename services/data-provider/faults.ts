// Faults of the simulated backend: a test sets them while it runs, and clears them again.

interface FaultSettings {
  /** Shortest time an answer takes. */
  latencyMs: number
  /** Longest time added at random, evenly spread. */
  jitterMs: number
  /** Share of requests never answered. */
  hangRate: number
  /** Share of the others answered with 500. */
  errorRate: number
  /** Share of the rest answered with JSON that does not parse. */
  garbageRate: number
}

export type Fault = 'hang' | 'error' | 'garbage' | 'none'

/** The largest value of each setting; the smallest is 0. A minute is longer than any time-out. */
const largest: Record<keyof FaultSettings, number> = {
  latencyMs: 60_000,
  jitterMs: 60_000,
  hangRate: 1,
  errorRate: 1,
  garbageRate: 1,
}

/** @param random from 0 to below 1 */
export function createFaults(initial: FaultSettings, random: () => number = Math.random) {
  const current = { ...initial }

  return {
    current: () => ({ ...current }),

    /**
     * Changes some of the settings: all of those given, or none.
     *
     * @param given the settings in the request
     * @returns the reason why they cannot be used
     */
    change(given: unknown): string | undefined {
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

    /** Draws what happens to one request. */
    draw(): { delayMs: number; fault: Fault } {
      return { delayMs: current.latencyMs + current.jitterMs * random(), fault: drawFault() }
    },
  }

  function drawFault(): Fault {
    if (random() < current.hangRate) return 'hang'
    if (random() < current.errorRate) return 'error'
    if (random() < current.garbageRate) return 'garbage'
    return 'none'
  }
}

function isFault(name: string): name is keyof FaultSettings {
  return Object.hasOwn(largest, name)
}
