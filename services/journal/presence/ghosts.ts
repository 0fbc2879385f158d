// Tabs whose connection broke. Each is kept for a while, so that a user who comes back elsewhere was never seen to leave;
// those that broke together leave together.
import { GHOST_MS } from '@keycast/backbone'

/** @param now by a clock that stands still while this process does: nobody can come back meanwhile */
export function createGhosts<T>(now: () => number) {
  /** Oldest first, from `first` on. */
  let batches: { leaveAt: number; tabs: Iterator<T> }[] = []
  let first = 0

  return {
    /** @param tabs looked up when they are to leave: one that came back is not among them any more */
    add: (tabs: Iterator<T>) => void batches.push({ leaveAt: now() + GHOST_MS, tabs }),

    /** @returns one that must leave now */
    takeDue(): T | undefined {
      while (first < batches.length && batches[first].leaveAt <= now()) {
        const { value, done } = batches[first].tabs.next()
        if (!done) return value
        first++
      }
      if (first > 0) batches = batches.slice(first)
      first = 0
      return undefined
    },

    get size() {
      return batches.length - first
    },
  }
}
