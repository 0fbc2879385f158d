// The time up to which each node has confirmed its refreshes. A confirmation belongs to one incarnation of a link:
// another incarnation has other watches, so its confirmations must not count for this one.
import { namespaceOf } from '@keycast/protocol'

/**
 * @typedef {import('../../backbone.ts').Confirmations} Confirmations
 * @typedef {Pick<import('../link.ts').Link<import('../../wire/values-codec.ts').Values>, 'id'>} Link
 */

/** @param {{ now: () => number }} options */
export function createConfirmed({ now }) {
  /** @type {WeakMap<Link, { id: string, byNamespace: Map<string, Confirmations> }>} */
  const byLink = new WeakMap()

  /** @param {Link} link @param {string} namespace @returns {Confirmations} */
  function confirmationsOf(link, namespace) {
    let own = byLink.get(link)
    if (own?.id !== link.id) {
      // Confirmations of the incarnation before stay with the keys that have them, and move no more.
      own = { id: link.id, byNamespace: new Map() }
      byLink.set(link, own)
    }
    let confirmations = own.byNamespace.get(namespace)
    if (!confirmations) {
      confirmations = { untilMs: Number.NEGATIVE_INFINITY }
      own.byNamespace.set(namespace, confirmations)
    }
    return confirmations
  }

  return {
    /** @param {Link} link @param {string} key */
    of: (link, key) => confirmationsOf(link, namespaceOf(key)),

    /** A beat reported the node's progress. @param {Link} link @param {Record<string, number>} lagsMs by namespace */
    take(link, lagsMs) {
      const nowMs = now()
      for (const [namespace, lagMs] of Object.entries(lagsMs)) {
        const confirmations = confirmationsOf(link, namespace)
        confirmations.untilMs = Math.max(confirmations.untilMs, nowMs - lagMs)
      }
    },
  }
}
