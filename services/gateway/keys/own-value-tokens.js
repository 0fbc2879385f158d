// What becomes of users' own values when their tokens change: a renewed one is asked with from then on; once none is valid the
// values go, and come back with the next.
import { createProblem } from './problem.js'

/**
 * @typedef {import('../access/backend/viewers.js').Viewer} Viewer
 * @typedef {ReturnType<typeof createOwnValueTokens>} OwnValueTokens
 */

/** When a client may ask again: its user may have another token by then. */
const RETRY_MS = 1_000

/**
 * @param {object} deps
 * @param {Pick<import('./own-values.js').OwnValues, 'of'>} deps.ownValues
 * @param {Pick<import('./cache.js').Cache, 'update'>} deps.cache
 * @param {Pick<import('@keycast/backbone').Backbone, 'renewCredentials'>} deps.backbone
 * @param {Pick<import('./subscriptions.js').Subscriptions, 'changed'>} deps.subscriptions
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createOwnValueTokens({ ownValues, cache, backbone, subscriptions, now }) {
  return {
    /** The viewer has another token. @param {Viewer} viewer */
    renewed(viewer) {
      for (const entry of ownValues.of(viewer)) {
        if (entry.subscriptions.length > 0) backbone.renewCredentials(entry.wireKey)
      }
    },

    /** No token of the viewer is valid any more. @param {Viewer} viewer */
    ended(viewer) {
      for (const entry of [...ownValues.of(viewer)]) {
        entry.value = undefined
        entry.problem = createProblem('token_expired', now(), { retryAfterMs: RETRY_MS })
        subscriptions.changed(entry, 'failed')
        // Removes what nobody wants.
        cache.update(entry)
      }
    },
  }
}
