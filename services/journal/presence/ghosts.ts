// Tabs whose connection broke. Each is kept for a while, so that a user who comes back elsewhere was never seen to leave;
// those that broke together leave together.
import { GHOST_MS } from '@keycast/backbone'
import { createFifo } from '@keycast/service'

/** @param now by a clock that stands still while this process does: nobody can come back meanwhile */
export function createGhosts<T>(now: () => number) {
  const batches = createFifo<{ leaveAt: number; tabs: Iterator<T> }>()

  return {
    /** @param tabs looked up when they are to leave: one that came back is not among them any more */
    add: (tabs: Iterator<T>) => batches.add({ leaveAt: now() + GHOST_MS, tabs }),

    /** @returns one that must leave now */
    takeDue(): T | undefined {
      for (let batch = batches.first(); batch && batch.leaveAt <= now(); batch = batches.first()) {
        const { value, done } = batch.tabs.next()
        if (!done) return value
        batches.take()
      }
      return undefined
    },

    get size() {
      return batches.size
    },
  }
}
