// Changes that gateways reported to this node lately, by key. A node that takes over a key trusts a gateway's state
// only if no gateway reported a change since: the node before it may have died before it heard of the change.
import { REFRESHES_REMEMBERED_MS } from '@keycast/backbone'
import { createRecent } from '@keycast/service'

export type ReportedChanges = ReturnType<typeof createReportedChanges>

/** Some 10 MB of keys. */
export const CHANGES_MAX = 100_000

/**
 * The time that a gateway needs to find a node that comes back. After it the gateway has forgotten changes that were in
 * time when the node started.
 */
const CONNECTING_MS = 10_000

export function createReportedChanges({ now, max = CHANGES_MAX }: { now: () => number; max?: number }) {
  /** The time of each key's last report. */
  const toldAt = createRecent<string, number>()
  /**
   * Nothing is known of changes before this. Gateways repeat the changes that a node missed because it was not there
   * yet.
   */
  let knownSince = now() - REFRESHES_REMEMBERED_MS + CONNECTING_MS

  return {
    /** @param key that changed */
    add(key: string) {
      toldAt.set(key, now())
      if (toldAt.size > max) knownSince = Math.max(knownSince, toldAt.takeOldest()?.value ?? 0)
    },

    /** Whether the key may have changed since then. */
    mayBeSince: (key: string, sinceMs: number) =>
      sinceMs <= Math.max(knownSince, toldAt.get(key) ?? Number.NEGATIVE_INFINITY),
  }
}
