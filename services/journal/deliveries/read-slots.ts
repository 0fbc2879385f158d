// Limits the reads of the log that a link may have under way, and the results that wait for its credit. A link that
// returns with 10,000 rooms thus holds 16 parts of histories and not 10,000. Those who read histories take turns.
import { accountsOf, createFairQueue, type Payer } from '@keycast/service'

/** Reads per link. */
const SLOTS_MAX = 16

/**
 * A watch or a history, either of which may take a slot. `isReading`: its read is under way, and the slot stays taken
 * until that ends, whoever wants the result: many who ask and go would have any number of reads under way.
 */
interface Reader {
  key: string
  takesSlot: boolean
  isReading: boolean
  /** The account that reads it; absent for a watch, which is for all who follow the room: rooms take turns as accounts do. */
  payer?: Payer
}

/** @param tell called when the key may try to take a slot again */
export function createReadSlots(tell: (key: string) => void) {
  let taken = 0
  /** Each for itself and not by its key: what ends of a room's watch is not the place of the next one. */
  const waiting = createFairQueue<Reader>()

  function giveBack() {
    taken--
    const next = waiting.take()
    if (next) tell(next.key)
  }

  return {
    /**
     * The reader begins to read, until {@link ended}.
     *
     * @returns false if none is left: `tell` is called once there is one
     */
    take(reader: Reader): boolean {
      if (reader.takesSlot) return false
      if (taken >= SLOTS_MAX || reader.isReading) {
        waiting.add(reader, reader.payer === undefined ? [undefined, reader.key] : accountsOf(reader.payer))
        return false
      }
      reader.takesSlot = reader.isReading = true
      taken++
      return true
    },

    /** The read is over; what it brought may still wait. */
    ended(reader: Reader) {
      reader.isReading = false
      if (!reader.takesSlot) giveBack()
    },

    /** @param reader may have no slot */
    release(reader: Reader) {
      waiting.delete(reader)
      if (!reader.takesSlot) return
      reader.takesSlot = false
      if (!reader.isReading) giveBack()
    },

    taken: () => taken,
  }
}

export type ReadSlots = ReturnType<typeof createReadSlots>
