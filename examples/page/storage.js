// The things this browser remembers of its reader.

/** A browser told to keep nothing throws at the mere mention of its storage. */
function open() {
  try {
    return localStorage
  } catch {
    return undefined
  }
}
const storage = open()

/** @param {string} name */
export const recall = name => storage?.getItem(name) ?? undefined

/** @param {string} name @param {string} value */
export function remember(name, value) {
  try {
    storage?.setItem(name, value)
  } catch {
    // It is full: whoever comes back chooses again.
  }
}
