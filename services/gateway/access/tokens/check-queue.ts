// Signature checks, a few at a time: they run beside the event loop and would take its core from it.
import { createFifo } from '@keycast/service'

/** More would keep all threads that also look up names and read files from doing so. */
const AT_ONCE = 2

/** At 0.25 ms a check the last of them waits for a quarter of a second. */
const WAITING_MAX = 2_000

export function createCheckQueue({
  atOnce = AT_ONCE,
  waitingMax = WAITING_MAX,
}: {
  atOnce?: number
  waitingMax?: number
} = {}) {
  let running = 0
  const waiting = createFifo<() => void>()

  function done() {
    const next = waiting.take()
    // The place is handed over as it is: were it free for a moment, another could take it, too.
    if (next) next()
    else running--
  }

  return {
    /** @returns `undefined`: too many wait, and the check is not made */
    run<T>(check: () => Promise<T>): Promise<T> | undefined {
      if (running >= atOnce && waiting.size >= waitingMax) return undefined
      return begin(check)
    },
  }

  async function begin<T>(check: () => Promise<T>) {
    if (running < atOnce) running++
    else await new Promise<void>(resolve => waiting.add(resolve))
    try {
      return await check()
    } finally {
      done()
    }
  }
}

export type CheckQueue = ReturnType<typeof createCheckQueue>
