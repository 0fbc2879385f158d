// Strings that many keys have, held once: each result that comes from a worker brings its own.

/** @param {{ max: number }} options how many are held; further ones are not shared */
export function createSharedStrings({ max }) {
  /** @type {Map<string, string>} */
  const strings = new Map()

  return {
    /** @param {string} string @returns {string} the same, as it came first */
    shared(string) {
      const first = strings.get(string)
      if (first !== undefined) return first
      if (strings.size < max) strings.set(string, string)
      return string
    },
  }
}
