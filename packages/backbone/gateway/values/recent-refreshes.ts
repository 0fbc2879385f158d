// Keys of which a change was reported a moment ago. A node that is found, or heard again, after that was not told, and
// may keep them fresh for another gateway.
import { createUniqueQueue } from '@keycast/service'

/** Longer than it takes all gateways to find a node by name, and one that was silent to be heard again. */
export const REMEMBERED_MS = 30_000

/** Some 10 MB of keys. If more are refreshed in that time, the oldest are forgotten. */
const KEYS_MAX = 100_000

/** @param {{ now: () => number }} options */
export function createRecentRefreshes({ now }) {
  /** The time of each key's last refresh call. @type {Map<string, number>} */
  const refreshedAt = new Map()
  const oldestFirst = /** @type {import('@keycast/service').UniqueQueue<string>} */ (createUniqueQueue())

  function forgetOld() {
    for (let key = oldestFirst.first(); key !== undefined; key = oldestFirst.first()) {
      const at = refreshedAt.get(key) ?? Number.NEGATIVE_INFINITY
      if (refreshedAt.size <= KEYS_MAX && now() - at <= REMEMBERED_MS) return
      oldestFirst.take()
      refreshedAt.delete(key)
    }
  }

  return {
    /** @param {string[]} keys */
    add(keys) {
      for (const key of keys) {
        oldestFirst.delete(key)
        oldestFirst.add(key)
        refreshedAt.set(key, now())
      }
      forgetOld()
    },
    /** @returns {string[]} */
    keys() {
      forgetOld()
      return [...refreshedAt.keys()]
    },
  }
}
