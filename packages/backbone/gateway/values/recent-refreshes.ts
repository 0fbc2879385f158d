// Keys of which a change was reported a moment ago. A node that is found, or heard again, after that was not told, and
// may keep them fresh for another gateway.
import { createRecent } from '@keycast/service'

/** Longer than it takes all gateways to find a node by name, and one that was silent to be heard again. */
export const REMEMBERED_MS = 30_000

/** Some 10 MB of keys. If more are refreshed in that time, the oldest are forgotten. */
const KEYS_MAX = 100_000

export function createRecentRefreshes<Node>({ now }: { now: () => number }) {
  /** `taker`: the node that has the new value itself. */
  const refreshed = createRecent<string, { at: number; taker: Node | undefined }>(KEYS_MAX)

  return {
    /** @param taker a node that was handed the new values */
    add(keys: string[], taker?: Node) {
      for (const key of keys) refreshed.set(key, { at: now(), taker })
    },
    /** Those that the node is to be told of. */
    keysFor(node: Node): string[] {
      for (
        let oldest = refreshed.oldest();
        oldest && now() - oldest.value.at > REMEMBERED_MS;
        oldest = refreshed.oldest()
      ) {
        refreshed.takeOldest()
      }
      return Array.from(refreshed)
        .filter(({ value }) => value.taker !== node)
        .map(({ key }) => key)
    },
  }
}
