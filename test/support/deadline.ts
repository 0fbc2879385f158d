// Waits for an event for a limited time. An event that never comes fails by its name, not by the test's time-out.

/** Far longer than any event takes on a busy machine: no test asserts a time. */
export const DEADLINE_MS = 60_000

/** A browser takes seconds to start, far more on a busy machine. */
export const BROWSER_START_MS = 90_000

/** @param what the event that did not happen, for the error */
export async function within<T>(
  promise: Promise<T>,
  what: string | (() => string),
  deadlineMs: number = DEADLINE_MS,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise((_, reject) => {
    const error = new Error() // made here for its stack, which names the waiting test
    timer = setTimeout(() => {
      error.message = tooLate(what, deadlineMs)
      reject(error)
    }, deadlineMs)
  })
  try {
    return (await Promise.race([promise, late])) as T
  } finally {
    clearTimeout(timer)
  }
}

const tooLate = (what: string | (() => string), deadlineMs: number) =>
  `${typeof what === 'string' ? what : what()} did not happen within ${deadlineMs} ms`

/** Between two questions at least, and at most. */
const ASK_EVERY_MS = 25
const ASK_EVERY_MS_MAX = 250

/**
 * Asks again and again until the answer is truthy. For what has no event to wait for: other processes' counters. Each
 * question costs the asked one CPU time, so they become rarer the longer it takes: a tenth of the time is lost at most.
 *
 * @param what the event that did not happen, for the error
 */
export async function eventually<T>(
  ask: () => Promise<T> | T,
  what: string | (() => string),
  { everyMs, deadlineMs = DEADLINE_MS }: { everyMs?: number; deadlineMs?: number } = {},
): Promise<NonNullable<T>> {
  const startedAt = performance.now()
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    const passedMs = performance.now() - startedAt
    if (passedMs > deadlineMs) throw new Error(tooLate(what, deadlineMs))
    await pause(everyMs ?? Math.min(ASK_EVERY_MS_MAX, Math.max(ASK_EVERY_MS, passedMs / 10)))
  }
}

/** Conditions that are looked at again whenever something has happened. */
export function createConditions() {
  const looks = new Set<() => void>()
  return {
    /** Something has happened. */
    look() {
      for (const look of looks) look()
    },

    /**
     * Waits until a condition holds.
     *
     * @param condition throws where it cannot hold any more
     * @param what the event that did not happen, for the error
     */
    async until(condition: () => unknown, what: string | (() => string)) {
      let look: () => void = () => {}
      const met = new Promise<void>((resolve, reject) => {
        look = () => {
          try {
            if (condition()) resolve()
          } catch (error) {
            reject(error)
          }
        }
        looks.add(look)
        look()
      })
      await within(met, what).finally(() => looks.delete(look))
    },
  }
}

/** The bounded time in which a test watches that something does not happen, or during which a fault lasts. */
export function pause(ms: number) {
  return new Promise(resolve => setTimeout(resolve, ms))
}
