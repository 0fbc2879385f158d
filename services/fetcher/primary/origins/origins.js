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
 * @property {number} keptKeys how many of its keys are kept fresh; changed by key-table.js
 * @property {Set<import('../keys/entry.js').Entry>} failing keys kept fresh whose last fetch failed, the one tried longest ago
 *   first; changed by schedule.js
 * @property {number} wokenAt when failing keys were last tried before their time, because another key's fetch succeeded;
 *   changed by recovery.js
 * @property {import('../timing/timer-wheel.js').Timer | undefined} probeTimer changed by recovery.js
 * @property {number} probedAt when a failing key was last looked for to be tried; changed by recovery.js
 * @property {Iterator<import('../keys/entry.js').Entry> | undefined} probes how far the look at failing keys is; changed by recovery.js
 */

/**
 * The backends that keycast.yaml names, each once: metrics have a label for each, and for no other.
 *
 * @param {import('@keycast/service').Namespaces} namespaces
 */
export function originNames({ names, get }) {
  return new Set(names.flatMap(name => get(name)?.origin ?? []))
}

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
  for (const name of originNames(namespaces)) {
    const limit = createFetchLimit({ max: inFlightMax, now })
    origins.set(name, {
      name,
      limit,
      queue: createFetchQueue({ limit: limit.inForce }),
      breaker: createBreaker({ now }),
      keptKeys: 0,
      failing: new Set(),
      wokenAt: Number.NEGATIVE_INFINITY,
      probeTimer: undefined,
      probedAt: Number.NEGATIVE_INFINITY,
      probes: undefined,
    })
  }
  return origins
}
