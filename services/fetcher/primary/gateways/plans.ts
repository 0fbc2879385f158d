// The plans by which gateways bring keys of another node, and this one leaves a key at what its gateway holds.
import type { Plan } from '@keycast/backbone'
import type { Entry } from '../keys/entry.ts'
import { takeOver } from '../keys/held.ts'
import type { Interest } from '../keys/interest.ts'
import { sharedKeyOf } from '../keys/viewer.ts'
import { QUIET_REFRESH_MS_MIN } from '../timing/refreshes-under-way.ts'
import type { Schedule } from '../timing/schedule.ts'
import type { ReportedChanges } from './reported-changes.ts'

/**
 * A plan's times may be too late by this much: they count from when it was sent, and it waits unread while a node takes
 * over hundreds of thousands of keys. Without it a change reported in that time would seem older than the last fetch.
 */
const PLAN_DELAY_MS_MAX = 10_000

/** Two gateways' plans that differ by less are one and the same node's: the first one holds, and nobody is told anew. */
const PLANS_DIFFER_MS = 2_000

interface Deps {
  schedule: Schedule
  interest: Interest
  reported: ReportedChanges
  now: () => number
}

export function createPlans({ schedule, interest, reported, now }: Deps) {
  /**
   * Two gateways may have had the key at different nodes. The gateway with the earlier plan would say `stale` until the
   * later one's time.
   *
   * @param entry that is kept by a plan
   */
  function askNoLaterThan(entry: Entry, atMs: number) {
    const { nextTryAt } = entry.timing
    if (nextTryAt === undefined || atMs > nextTryAt - PLANS_DIFFER_MS) return
    schedule.takeOver(entry, atMs)
    interest.oweAll(entry)
  }

  /**
   * Whether a new watch of another node's key can rely on its gateway's state, until that node would have asked the
   * backend again. Otherwise each node that dies would have all its keys fetched at once.
   *
   * @param entry that is watched
   */
  return function isKept(entry: Entry, version: string, { inMs, maxAgeMs, askedAgoMs }: Plan): boolean {
    const { held, fetch, namespace } = entry
    if (held.value || held.failure || fetch || held.invalid) return false
    // Gateways that hold different versions cannot both hold the latest.
    if (held.takenOver) {
      const isSame = held.takenOver.version === version
      if (isSame) askNoLaterThan(entry, now() + inMs)
      return isSame
    }
    const { refreshMs } = namespace
    if (refreshMs < QUIET_REFRESH_MS_MIN || inMs === 0 || inMs > refreshMs) return false
    // A change that was reported to this node; the node before it may have died without hearing of it.
    if (reported.mayBeSince(sharedKeyOf(entry), now() - askedAgoMs - PLAN_DELAY_MS_MAX)) return false
    takeOver(entry, version, maxAgeMs)
    schedule.takeOver(entry, now() + inMs)
    return true
  }
}
