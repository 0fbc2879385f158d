// The payers of a gateway's requests to journals: of publishes under way, of which an account has a share, and of the parts of
// histories that are being read.
import { createStock, type Payer } from '@keycast/service'

/** Nobody pays for what a backend asks. */
export interface Paid {
  payer?: Payer
}

/** @param free places of publishes that nobody has */
export function createRoomPayers({ free }: { free: () => number }) {
  const places = createStock({ free })
  const readers = new Map<string, Payer>()

  return {
    /** @returns gives the place of a publish back; `undefined` if the payer has had their share */
    takePlace(payer: Payer | undefined): (() => void) | undefined {
      if (!places.hasRoom(payer, 1)) return undefined
      const holder = places.charge(payer, 1)
      return () => holder && places.change(holder, -1)
    },

    /** Reads a part of a history, in the turn of the first who asks for it. @param key of the part */
    async read<T>(key: string, payer: Payer | undefined, read: () => Promise<T>): Promise<T> {
      const isFirst = payer !== undefined && !readers.has(key)
      if (isFirst) readers.set(key, payer)
      const end = await read()
      if (isFirst) readers.delete(key)
      return end
    },

    readerOf: (key: string) => readers.get(key),
  }
}
