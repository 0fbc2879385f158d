// Removes what the log need not keep any more: messages past their age, and old messageIds.
import type { World } from '@keycast/service'
import type { Between } from './group-commit.ts'
import type { Log } from './log/log.ts'

/** Rooms are trimmed by age, and old messageIds forgotten, at this interval. */
const EXPIRE_MS = 1_000

/** As long as there is more to remove, half of each interval goes to it: publishes have their turn in between. */
const EXPIRE_WORK_MS = 500

interface Deps extends Pick<World, 'now' | 'every'> {
  log: Pick<Log, 'expire'>
  bounds: { settle: () => Promise<void>; retentionOf: Parameters<Log['expire']>[0] }
  /** `head`: where the room's messages begin from now on. */
  onTrimmed: (room: string, head: Awaited<ReturnType<Log['expire']>>['trimmed'][number]['head']) => void
  onFailed: (error: unknown) => void
  between: Between
}

export function createExpiry({ log, bounds, onTrimmed, onFailed, between, now, every }: Deps) {
  let isExpiring = false
  let stop = () => {}

  /** @returns whether there may be more to remove */
  async function expire(): Promise<boolean> {
    await bounds.settle()
    const { trimmed, more } = await log.expire(bounds.retentionOf)
    for (const { room, head } of trimmed) onTrimmed(room, head)
    return more
  }

  /** Removes what is old, in parts. */
  async function expireParts() {
    if (isExpiring) return
    isExpiring = true
    const endAt = now() + EXPIRE_WORK_MS
    try {
      while ((await between(expire)) && now() < endAt);
    } catch (error) {
      onFailed(error)
    }
    isExpiring = false
  }

  return {
    start() {
      stop = every(EXPIRE_MS, () => void expireParts())
    },
    stop: () => stop(),
  }
}
