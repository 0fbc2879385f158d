// Removes what the log need not keep any more: messages past their age, and old messageIds.
import type { World } from '@keycast/service'
import { type Log, LogBroken } from './log/log.ts'

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
  /** Runs work between two batches. */
  between: (work: () => Promise<void>) => void
}

export function createExpiry({ log, bounds, onTrimmed, onFailed, between, now, every }: Deps) {
  let isExpiring = false
  let stop = () => {}

  /** @returns whether there may be more to remove */
  async function expire(): Promise<boolean> {
    try {
      await bounds.settle()
      const { trimmed, more } = await log.expire(bounds.retentionOf)
      for (const { room, head } of trimmed) onTrimmed(room, head)
      return more
    } catch (error) {
      if (error instanceof LogBroken) throw error
      onFailed(error)
      return false
    }
  }

  /** Removes what is old, in parts. */
  function expireUntil(endAt: number) {
    between(async () => {
      if ((await expire()) && now() < endAt) expireUntil(endAt)
      else isExpiring = false
    })
  }

  return {
    start() {
      stop = every(EXPIRE_MS, () => {
        if (isExpiring) return
        isExpiring = true
        expireUntil(now() + EXPIRE_WORK_MS)
      })
    },
    stop: () => stop(),
  }
}
