// The backends behind the namespaces, by origin: how much each can take, and whether it works.
import { createFetchQueue } from '../fetching/fetch-queue.ts'
import { createBreaker } from './breaker.ts'
import { createFetchLimit } from './fetch-limit.ts'

/**
 * @typedef {object} Origin
 * @property {string} name scheme, host and port
 * @property {import('../fetching/fetch-queue.ts').FetchQueue<import('../fetching/fetches.ts').Fetch>} queue used by fetches.ts
 * @property {import('./fetch-limit.ts').FetchLimit} limit of its fetches in flight; told of each fetch by fetches.ts
 * @property {import('./breaker.ts').Breaker} breaker told of each fetch by fetches.ts
 * @property {number} keptKeys how many of its keys are kept fresh; changed by key-table.ts
 * @property {Set<import('../keys/entry.ts').Entry>} failing keys kept fresh whose last fetch failed, the one tried longest ago
 *   first; changed by schedule.ts
 * @property {number} wokenAt when failing keys were last tried before their time, because another key's fetch succeeded;
 *   changed by recovery.ts
 * @property {import('../timing/timer-wheel.ts').Timer | undefined} probeTimer changed by recovery.ts
 * @property {number} probedAt when a failing key was last looked for to be tried; changed by recovery.ts
 * @property {Iterator<import('../keys/entry.ts').Entry> | undefined} probes how far the look at failing keys is; changed by recovery.ts
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
