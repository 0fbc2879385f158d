// The backends behind the namespaces, by origin: what they can take, and how they are.

import { createLanes } from '../fetching/fetch-queue.js'
import { createBreaker } from './breaker.js'

/**
 * @typedef {object} Origin
 * @property {string} name scheme, host and port
 * @property {import('../fetching/fetch-queue.js').Lanes<import('../keys/entry.js').Fetch>} lanes
 * @property {import('./breaker.js').Breaker} breaker
 * @property {Set<import('../keys/entry.js').Entry>} failing keys kept fresh whose last try failed, the one tried longest ago first
 * @property {number} startedAt when the last fetch was handed to a worker
 * @property {number} wokenAt when failing keys were last tried before their time, because some key's try succeeded
 * @property {import('../timing/timer-wheel.js').Timer | undefined} lookTimer see recovery.js
 */

/**
 * @param {object} options
 * @param {import('@keycast/service').Namespaces} options.namespaces
 * @param {number} options.cap fetches in flight, each
 * @param {() => number} options.now monotonic, in milliseconds
 * @returns {Map<string, Origin>}
 */
export function createOrigins({ namespaces, cap, now }) {
  /** @type {Map<string, Origin>} */
  const origins = new Map()
  for (const namespace of namespaces.names) {
    const name = namespaces.get(namespace)?.origin
    if (name === undefined || origins.has(name)) continue
    origins.set(name, {
      name,
      lanes: createLanes({ cap }),
      breaker: createBreaker({ now }),
      failing: new Set(),
      startedAt: Number.NEGATIVE_INFINITY,
      wokenAt: Number.NEGATIVE_INFINITY,
      lookTimer: undefined,
    })
  }
  return origins
}
