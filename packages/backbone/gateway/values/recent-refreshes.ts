// Keys of which a change was reported a moment ago. A node that is found, or heard again, after that was not told, and
// may keep them fresh for another gateway.
import { createUniqueQueue, type UniqueQueue } from '@keycast/service'

/** Longer than it takes all gateways to find a node by name, and one that was silent to be heard again. */
export const REMEMBERED_MS = 30_000

/** Some 10 MB of keys. If more are refreshed in that time, the oldest are forgotten. */
const KEYS_MAX = 100_000

export function createRecentRefreshes({ now }: { now: () => number }) {
  /** The time of each key's last refresh call. */
  const refreshedAt = new Map<string, number>()
  const oldestFirst = createUniqueQueue() as UniqueQueue<string>

  function forgetOld() {
    for (let key = oldestFirst.first(); key !== undefined; key = oldestFirst.first()) {
      const at = refreshedAt.get(key) ?? Number.NEGATIVE_INFINITY
      if (refreshedAt.size <= KEYS_MAX && now() - at <= REMEMBERED_MS) return
      oldestFirst.take()
      refreshedAt.delete(key)
    }
  }

  return {
    add(keys: string[]) {
      for (const key of keys) {
        oldestFirst.delete(key)
        oldestFirst.add(key)
        refreshedAt.set(key, now())
      }
      forgetOld()
    },
    keys(): string[] {
      forgetOld()
      return [...refreshedAt.keys()]
    },
  }
}
