// Places for what waits: so many in all, and each account has a share.
import type { Payer } from './payer.ts'
import { createStock } from './stock.ts'

export function createPlaces(max: number) {
  let taken = 0
  const stock = createStock({ free: () => max - taken })

  return {
    /** @returns gives them back, once; `undefined` where there is no room */
    take(payer: Payer | undefined, places: number): (() => void) | undefined {
      if (taken + places > max || !stock.hasRoom(payer, places)) return undefined
      taken += places
      const holder = stock.charge(payer, places)
      return () => {
        taken -= places
        if (holder) stock.change(holder, -places)
      }
    },
  }
}
