// The time up to which each node has confirmed its refreshes. A confirmation belongs to one incarnation of a link:
// another incarnation has other watches, so its confirmations must not count for this one.
import { namespaceOf } from '@keycast/protocol'
import type { Confirmations } from '../../backbone.ts'
import type { Values } from '../../wire/values-codec.ts'
import type { Link as LinkOf } from '../link.ts'

type Link = Pick<LinkOf<Values>, 'id'>

export function createConfirmed({ now }: { now: () => number }) {
  const byLink = new WeakMap<Link, { id: string; byNamespace: Map<string, Confirmations> }>()

  function confirmationsOf(link: Link, namespace: string): Confirmations {
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
    of: (link: Link, key: string) => confirmationsOf(link, namespaceOf(key)),

    /** A beat reported the node's progress. @param lagsMs by namespace */
    take(link: Link, lagsMs: Record<string, number>) {
      const nowMs = now()
      for (const [namespace, lagMs] of Object.entries(lagsMs)) {
        const confirmations = confirmationsOf(link, namespace)
        confirmations.untilMs = Math.max(confirmations.untilMs, nowMs - lagMs)
      }
    },
  }
}
