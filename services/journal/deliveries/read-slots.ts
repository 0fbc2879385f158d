// Limits the reads of the log that a link may have under way, and the results that wait for its credit. A link that
// returns with 10,000 rooms thus holds 16 parts of histories and not 10,000.

/** Reads per link. */
const SLOTS_MAX = 16

/** A watch or a history, either of which may take a slot. */
interface Reader {
  key: string
  takesSlot: boolean
}

/** @param tell called when the key may try to take a slot again */
export function createReadSlots(tell: (key: string) => void) {
  let taken = 0
  /** Keys that wait for a slot. */
  const waiting = new Set<string>()

  return {
    /** @returns false if none is left: `tell` is called once there is one */
    take(reader: Reader): boolean {
      if (reader.takesSlot) return false
      if (taken >= SLOTS_MAX) {
        waiting.add(reader.key)
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
      for (const key of waiting) {
        waiting.delete(key)
        return tell(key)
      }
    },

    taken: () => taken,
  }
}

export type ReadSlots = ReturnType<typeof createReadSlots>
