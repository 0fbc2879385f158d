// Signature checks, a few at a time: they run beside the event loop and would take its core from it.

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
  /** Those before `next` have begun. */
  let waiting: (() => void)[] = []
  let next = 0

  function done() {
    if (next === waiting.length) {
      running--
      return
    }
    // The place is handed over as it is: were it free for a moment, another could take it, too.
    waiting[next++]()
    // Now and then, and not each time: taking the first out of an array moves all others.
    if (next === waiting.length || next >= waitingMax) {
      waiting = waiting.slice(next)
      next = 0
    }
  }

  return {
    /** @returns `undefined`: too many wait, and the check is not made */
    run<T>(check: () => Promise<T>): Promise<T> | undefined {
      if (running >= atOnce && waiting.length - next >= waitingMax) return undefined
      return begin(check)
    },
  }

  async function begin<T>(check: () => Promise<T>) {
    if (running < atOnce) running++
    else await new Promise(resolve => waiting.push(() => resolve(undefined)))
    try {
      return await check()
    } finally {
      done()
    }
  }
}

export type CheckQueue = ReturnType<typeof createCheckQueue>
