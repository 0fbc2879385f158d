// Limits the reads of the log that a link may have under way, and the results that wait for its credit. A link that
// returns with 10,000 rooms thus holds 16 parts of histories and not 10,000. Those who read histories take turns.
import { accountsOf, createFairQueue, NO_LANE, type Payer } from '@keycast/service'

/** Reads per link. */
const SLOTS_MAX = 16

/** A watch or a history, either of which may take a slot. */
interface Reader {
  key: string
  takesSlot: boolean
  /** Who reads it; nobody for a watch, which all who follow the room share. */
  payer?: Payer
}

/** @param tell called when the key may try to take a slot again */
export function createReadSlots(tell: (key: string) => void) {
  let taken = 0
  /** Keys that wait for a slot. */
  const waiting = createFairQueue<string>()

  return {
    /** @returns false if none is left: `tell` is called once there is one */
    take(reader: Reader): boolean {
      if (reader.takesSlot) return false
      if (taken >= SLOTS_MAX) {
        waiting.add(reader.key, reader.payer === undefined ? NO_LANE : accountsOf(reader.payer))
        return false
      }
      reader.takesSlot = true
      taken++
      return true
    },

    /** @param reader may have no slot */
    release(reader: Reader) {
      waiting.delete(reader.key)
      if (!reader.takesSlot) return
      reader.takesSlot = false
      taken--
      const next = waiting.take()
      if (next !== undefined) tell(next)
    },

    taken: () => taken,
  }
}

export type ReadSlots = ReturnType<typeof createReadSlots>
