// Places for bodies that take long to be read. Backends take turns: one that sends hundreds at once keeps no other's waiting.
import { createFairQueue } from '@keycast/service'

export function createPlaces(count: number) {
  const waiting = createFairQueue<() => void>()
  let free = count

  return {
    /** @returns resolves once there is one, to be given back */
    take(origin: string): Promise<void> {
      return new Promise(resolve => {
        if (free === 0) return waiting.add(resolve, [origin])
        free--
        resolve()
      })
    },

    giveBack() {
      const next = waiting.take()
      if (next) next()
      else free++
    },
  }
}
