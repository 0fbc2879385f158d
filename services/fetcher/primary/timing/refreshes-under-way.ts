// The refreshes that are under way, and so the time up to which all are over. Each beat tells links that time, instead
// of a confirmation per key and refresh: docs/decisions, 16.
import { createUniqueQueue, TURN_MS } from '@keycast/service'

/**
 * @typedef {import('../keys/entry.ts').Entry} Entry
 * @typedef {ReturnType<typeof createRefreshes>} Refreshes
 *
 * A refresh from its time on until its fetch ended. `isOverdue`: it takes so long that links are told, key by key.
 * @typedef {{ entry: Entry, dueAt: number, isOverdue: boolean }} Refresh
 */

/**
 * Keys that are refreshed more often are confirmed one by one: a get may accept no value that is older than a beat can
 * tell.
 */
export const QUIET_REFRESH_MS_MIN = 5_000

/** A longer fetch is reported by itself, and no longer holds back the time that beats tell for all others. */
export const OVERDUE_MS = 1_000

/**
 * @param {object} deps
 * @param {import('@keycast/service').Namespaces} deps.namespaces
 * @param {Pick<import('./timer-wheel.ts').TimerWheel, 'reachedMs'>} deps.wheel
 * @param {(entry: Entry) => void} deps.onOverdue links that rely on being told of changes only must be told now
 * @param {() => number} deps.now
 */
export function createRefreshes({ namespaces, wheel, onOverdue, now }) {
  /**
   * By namespace, the refresh that was due first in front.
   *
   * @type {Map<string, import('@keycast/service').UniqueQueue<Refresh>>}
   */
  const underWay = new Map()
  for (const name of namespaces.names) {
    if ((namespaces.get(name)?.refreshMs ?? 0) >= QUIET_REFRESH_MS_MIN) underWay.set(name, createUniqueQueue())
  }

  /** A refresh is due. @param {Entry} entry @param {number} dueAt */
  function begin(entry, dueAt) {
    const queue = underWay.get(entry.namespace.name)
    if (!queue || entry.refresh) return
    entry.refresh = { entry, dueAt, isOverdue: false }
    queue.add(entry.refresh)
  }

  /** Its fetch ended, or is not made. @param {Entry} entry */
  function end(entry) {
    if (!entry.refresh) return
    underWay.get(entry.namespace.name)?.delete(entry.refresh)
    entry.refresh = undefined
  }

  /** @param {import('@keycast/service').UniqueQueue<Refresh>} queue */
  function tellOverdue(queue) {
    const sentBefore = now() - OVERDUE_MS
    const endsAt = now() + TURN_MS
    for (let first = queue.first(); first; first = queue.first()) {
      const { sentAt } = first.entry.fetch ?? {}
      if (sentAt === undefined || sentAt > sentBefore) return
      queue.delete(first)
      first.isOverdue = true
      onOverdue(first.entry)
      // A backend that hangs has a thousand of them, and each may have hundreds of links. The rest is told with the
      // next beat.
      if (now() >= endsAt) return
    }
  }

  return {
    begin,
    end,

    /** By namespace: the age of the last moment at which every refresh that was due had ended. */
    lagsMs() {
      if (underWay.size === 0) return undefined
      /** @type {Record<string, number>} */
      const lags = {}
      for (const [name, queue] of underWay) {
        tellOverdue(queue)
        lags[name] = Math.max(0, now() - Math.min(queue.first()?.dueAt ?? Number.POSITIVE_INFINITY, wheel.reachedMs()))
      }
      return lags
    },
  }
}

/** Whether links are told of a key's refreshes only by beats. @param {Entry} entry */
const isQuiet = ({ namespace, refresh, held }) =>
  namespace.refreshMs >= QUIET_REFRESH_MS_MIN && !isOverdue({ refresh }) && held.failure === undefined

/** Whether the key's refresh takes so long that links are told. @param {Pick<Entry, 'refresh'>} entry */
export const isOverdue = ({ refresh }) => refresh?.isOverdue === true

/**
 * The time at which a quiet watcher is told of the key again at the earliest, and the period.
 *
 * @param {Entry} entry
 * @param {number} now
 * @returns {import('@keycast/backbone').Next | undefined} `undefined` if it is told each time
 */
export function nextOf(entry, now) {
  const { nextTryAt, timer } = entry.timing
  if (!isQuiet(entry) || nextTryAt === undefined || timer === undefined) return undefined
  return { inMs: Math.ceil(Math.max(0, nextTryAt - now)), everyMs: entry.namespace.refreshMs }
}
