// Limits the reads of the log that a link may have under way, and the results that wait for its credit. A link that
// returns with 10,000 rooms thus holds 16 parts of histories and not 10,000.

/** Reads per link. */
const SLOTS_MAX = 16

/**
 * A watch or a history, either of which may take a slot.
 * @typedef {{ key: string, takesSlot: boolean }} Reader
 */

/** @param {(key: string) => void} tell called when the key may try to take a slot again */
export function createReadSlots(tell) {
  let taken = 0
  /** Keys that wait for a slot. @type {Set<string>} */
  const waiting = new Set()

  return {
    /** @param {Reader} reader @returns {boolean} false if none is left: `tell` is called once there is one */
    take(reader) {
      if (reader.takesSlot) return false
      if (taken >= SLOTS_MAX) {
        waiting.add(reader.key)
        return false
      }
      reader.takesSlot = true
      taken++
      return true
    },

    /** @param {Reader} reader may have no slot */
    release(reader) {
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

/** @typedef {ReturnType<typeof createReadSlots>} ReadSlots */
