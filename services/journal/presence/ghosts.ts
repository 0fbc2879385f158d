// Tabs whose connection broke. Each is kept for a while, so that a user who comes back elsewhere was never seen to leave;
// those that broke together leave together.
import { GHOST_MS } from '@keycast/backbone'

/**
 * @template T
 * @param {() => number} now by a clock that stands still while this process does: nobody can come back meanwhile
 */
export function createGhosts(now) {
  /** Oldest first, from `first` on. @type {{ leaveAt: number, tabs: Iterator<T> }[]} */
  let batches = []
  let first = 0

  return {
    /** @param {Iterator<T>} tabs checked when they are to leave: until then some may have come back */
    add: tabs => void batches.push({ leaveAt: now() + GHOST_MS, tabs }),

    /** @returns {T | undefined} one that must leave now, or has come back */
    takeDue() {
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
