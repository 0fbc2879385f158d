// The backends behind the namespaces, by origin: how much each can take, and whether it works.
import { createFetchQueue } from '../fetching/fetch-queue.js'
import { createBreaker } from './breaker.js'
import { createFetchLimit } from './fetch-limit.js'

/**
 * @typedef {object} Origin
 * @property {string} name scheme, host and port
 * @property {import('../fetching/fetch-queue.js').FetchQueue<import('../fetching/fetches.js').Fetch>} queue used by fetches.js
 * @property {import('./fetch-limit.js').FetchLimit} limit of its fetches in flight; told of each fetch by fetches.js
 * @property {import('./breaker.js').Breaker} breaker told of each fetch by fetches.js
 * @property {Set<import('../keys/entry.js').Entry>} failing keys kept fresh whose last fetch failed, the one tried longest ago
 *   first; changed by schedule.js
 * @property {number} wokenAt when failing keys were last tried before their time, because another key's fetch succeeded;
 *   changed by recovery.js
 * @property {import('../timing/timer-wheel.js').Timer | undefined} probeTimer changed by recovery.js
 */

/**
 * @param {object} options
 * @param {import('@keycast/service').Namespaces} options.namespaces
 * @param {number} options.inFlightMax fetches, each
 * @param {() => number} options.now monotonic, in milliseconds
 * @returns {Map<string, Origin>}
 */
export function createOrigins({ namespaces, inFlightMax, now }) {
  /** @type {Map<string, Origin>} */
  const origins = new Map()
  for (const namespace of namespaces.names) {
    const name = namespaces.get(namespace)?.origin
    if (name === undefined || origins.has(name)) continue
    const limit = createFetchLimit({ max: inFlightMax, now })
    origins.set(name, {
      name,
      limit,
      queue: createFetchQueue({ limit: limit.inForce }),
      breaker: createBreaker({ now }),
      failing: new Set(),
      wokenAt: Number.NEGATIVE_INFINITY,
      probeTimer: undefined,
    })
  }
  return origins
}
