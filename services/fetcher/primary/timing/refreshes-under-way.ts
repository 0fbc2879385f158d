// The refreshes that are under way, and so the time up to which all are over. Each beat tells links that time, instead
// of a confirmation per key and refresh: docs/decisions, 16.
import type { Next } from '@keycast/backbone'
import { createUniqueQueue, type Namespaces, type UniqueQueue, workTurn } from '@keycast/service'
import type { Entry } from '../keys/entry.ts'

/**
 * A refresh from its time on until its fetch ended. `againAt`: it was due once more then. `isOverdue`: it takes so long
 * that links are told, key by key.
 */
export interface Refresh {
  entry: Entry
  dueAt: number
  againAt: number
  isOverdue: boolean
}

/**
 * Keys that are refreshed more often are confirmed one by one: a get may accept no value that is older than a beat can
 * tell.
 */
export const QUIET_REFRESH_MS_MIN = 5_000

/** A longer fetch is reported by itself, and no longer holds back the time that beats tell for all others. */
export const OVERDUE_MS = 1_000

interface Deps {
  namespaces: Namespaces
  wheel: { reachedMs: () => number }
  /** Links that rely on being told of changes only must be told now. */
  onOverdue: (entry: Entry) => void
  now: () => number
}

export function createRefreshes({ namespaces, wheel, onOverdue, now }: Deps) {
  /** By namespace, the refresh that was due first in front. */
  const underWay = new Map<string, UniqueQueue<Refresh>>()

  /** As keycast.yaml says now. A namespace that is quiet no more keeps its queue: refreshes may be under way. */
  function renew() {
    for (const name of namespaces.names) {
      const isQuiet = (namespaces.get(name)?.refreshMs ?? 0) >= QUIET_REFRESH_MS_MIN
      if (isQuiet && !underWay.has(name)) underWay.set(name, createUniqueQueue())
    }
  }
  renew()

  /** A refresh is due. */
  function begin(entry: Entry, dueAt: number) {
    const queue = underWay.get(entry.namespace.name)
    if (entry.refresh) entry.refresh.againAt = dueAt
    if (!queue || entry.refresh) return
    entry.refresh = { entry, dueAt, againAt: dueAt, isOverdue: false }
    queue.add(entry.refresh)
  }

  /** Its fetch ended, or is not made. */
  function end(entry: Entry) {
    if (!entry.refresh) return
    underWay.get(entry.namespace.name)?.delete(entry.refresh)
    entry.refresh = undefined
  }

  /**
   * A backend that hangs has a thousand of them, and each may have hundreds of links. Those for
   * which a turn has no room are told with the next beat.
   */
  function tellOverdue(queue: UniqueQueue<Refresh>) {
    const sentBefore = now() - OVERDUE_MS
    workTurn(now, () => {
      const first = queue.first()
      const { sentAt } = first?.entry.fetch ?? {}
      if (!first || sentAt === undefined || sentAt > sentBefore) return false
      queue.delete(first)
      first.isOverdue = true
      onOverdue(first.entry)
      return true
    })
  }

  return {
    begin,
    end,
    renew,

    /** By namespace: the age of the last moment at which every refresh that was due had ended. */
    lagsMs() {
      if (underWay.size === 0) return undefined
      const lags: Record<string, number> = {}
      for (const [name, queue] of underWay) {
        tellOverdue(queue)
        lags[name] = Math.max(0, now() - Math.min(queue.first()?.dueAt ?? Number.POSITIVE_INFINITY, wheel.reachedMs()))
      }
      return lags
    },
  }
}

/**
 * Whether links are told of a key's refreshes only by beats: not of one that is under way, for the next is a period later,
 * and until then its gateway would count on the value before.
 */
const isQuiet = ({ namespace, refresh, held }: Entry) =>
  namespace.refreshMs >= QUIET_REFRESH_MS_MIN && refresh === undefined && held.failure === undefined

/** Whether the key's refresh takes so long that links are told. */
export const isOverdue = ({ refresh }: Entry) => refresh?.isOverdue === true

/**
 * The time at which a quiet watcher is told of the key again at the earliest, and the period.
 *
 * @returns `undefined` if it is told each time
 */
export function nextOf(entry: Entry, now: number): Next | undefined {
  const { nextTryAt, timer } = entry.timing
  if (!isQuiet(entry) || nextTryAt === undefined || timer === undefined) return undefined
  return { inMs: Math.ceil(Math.max(0, nextTryAt - now)), everyMs: entry.namespace.refreshMs }
}
