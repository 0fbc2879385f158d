// Keys of which a change was reported a moment ago. A node that is found, or heard again, after that was not told, and
// may keep them fresh for another gateway.
import { createRecent } from '@keycast/service'

/** Longer than it takes all gateways to find a node by name, and one that was silent to be heard again. */
export const REMEMBERED_MS = 30_000

/** Some 10 MB of keys. If more are refreshed in that time, the oldest are forgotten. */
const KEYS_MAX = 100_000

export function createRecentRefreshes({ now }: { now: () => number }) {
  /** The time of each key's last refresh call. */
  const refreshedAt = createRecent<string, number>(KEYS_MAX)

  return {
    add(keys: string[]) {
      for (const key of keys) refreshedAt.set(key, now())
    },
    keys(): string[] {
      for (
        let oldest = refreshedAt.oldest();
        oldest && now() - oldest.value > REMEMBERED_MS;
        oldest = refreshedAt.oldest()
      ) {
        refreshedAt.takeOldest()
      }
      return Array.from(refreshedAt, ({ key }) => key)
    },
  }
}
