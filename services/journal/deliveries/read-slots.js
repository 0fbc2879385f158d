// Reads of the log that a link may have under way, and what they gave while it waits for credit. One that comes back with
// 10,000 rooms holds 16 parts of histories and not 10,000.

/** Reads of one link. */
const SLOTS_MAX = 16

/**
 * What may take a slot.
 * @typedef {{ key: string, takesSlot: boolean }} Reader
 */

/** @param {(key: string) => void} tell asked for again when there is a slot for it */
export function createReadSlots(tell) {
  let taken = 0
  /** Keys that wait for one. @type {Set<string>} */
  const waiting = new Set()

  return {
    /** @param {Reader} reader @returns {boolean} false where none is left: its key is told again when there is one */
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

    /** @param {Reader} reader that may have none */
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
