// Tabs whose connection broke. Each is kept for a while, so that a user who comes back elsewhere was never seen to leave;
// those that broke together leave together.
import { GHOST_MS } from '@keycast/backbone'

/**
 * @template T
 * @param {() => number} now
 */
export function createGhosts(now) {
  /** Oldest first, from `first` on. @type {{ leaveAt: number, tabs: Iterator<T> }[]} */
  let batches = []
  let first = 0
  let stoodStillMs = 0

  /** Time that passed while this process ran. While it stood still nobody could come back. */
  const awakeMs = () => now() - stoodStillMs

  return {
    /** @param {Iterator<T>} tabs checked when they are to leave: until then some may have come back */
    add: tabs => void batches.push({ leaveAt: awakeMs() + GHOST_MS, tabs }),

    /** @returns {T | undefined} one that must leave now, or has come back */
    takeDue() {
      while (first < batches.length && batches[first].leaveAt <= awakeMs()) {
        const { value, done } = batches[first].tabs.next()
        if (!done) return value
        first++
      }
      if (first > 0) batches = batches.slice(first)
      first = 0
      return undefined
    },

    /** @param {number} ms this process did nothing for so long */
    stoodStill(ms) {
      stoodStillMs += ms
    },

    get size() {
      return batches.length - first
    },
  }
}
