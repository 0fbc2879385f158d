// The things this browser remembers: the reader's name, and the claims by which rooms recognize it.

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
export const recall = name => storage?.getItem(`keycast-chat ${name}`) ?? undefined

/** @param {string} name @param {string} value */
export function remember(name, value) {
  try {
    storage?.setItem(`keycast-chat ${name}`, value)
  } catch {
    // It is full: whoever comes back gives the name again.
  }
}
