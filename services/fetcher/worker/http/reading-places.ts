// Places for bodies that take long to be read. Backends take turns: one that sends hundreds at once keeps no other's waiting.
import { createFairQueue, type World } from '@keycast/service'

export function createReadingPlaces(count: number, { after }: Pick<World, 'after'>) {
  const waiting = createFairQueue<() => void>()
  let free = count

  return {
    /** @returns whether there is one within `ms`, to be given back */
    take(origin: string, ms: number): Promise<boolean> {
      return new Promise(resolve => {
        if (free === 0) {
          const begin = () => {
            endPatience()
            resolve(true)
          }
          const endPatience = after(ms, () => {
            waiting.delete(begin)
            resolve(false)
          })
          return waiting.add(begin, [origin])
        }
        free--
        resolve(true)
      })
    },

    giveBack() {
      const next = waiting.take()
      if (next) next()
      else free++
    },
  }
}
