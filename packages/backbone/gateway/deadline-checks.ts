// Looks for deadlines that have passed, while there are any. A timer for each command or join would cost as much as the rest
// of it.
import type { Every } from '@keycast/service'

/** Precision of the deadlines. */
const CHECK_MS = 100

interface Options {
  every: Every
  /** Whether anything has a deadline. */
  isNeeded: () => boolean
  /** Ends what is over. */
  expire: () => void
}

/** @returns to be called after whatever changes `isNeeded` */
export function createDeadlineChecks({ every, isNeeded, expire }: Options): () => void {
  let stop: (() => void) | undefined

  function look() {
    if (isNeeded() === (stop !== undefined)) return
    stop?.()
    stop = stop ? undefined : every(CHECK_MS, check)
  }

  function check() {
    expire()
    look()
  }

  return look
}
