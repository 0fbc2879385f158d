// Strings that many keys have, stored once: each result from a worker brings its own copy.

/** @param {{ max: number }} options the number of strings stored; further ones are not shared */
export function createSharedStrings({ max }) {
  /** @type {Map<string, string>} */
  const strings = new Map()

  return {
    /** @param {string} string @returns {string} the first copy of it */
    shared(string) {
      const first = strings.get(string)
      if (first !== undefined) return first
      if (strings.size < max) strings.set(string, string)
      return string
    },
  }
}
