// Strings that many keys have, stored once: each result from a worker brings its own copy.

/** @param options the number of strings stored; further ones are not shared */
export function createSharedStrings({ max }: { max: number }) {
  const strings = new Map<string, string>()

  return {
    /** @returns the first copy of it */
    shared(string: string): string {
      const first = strings.get(string)
      if (first !== undefined) return first
      if (strings.size < max) strings.set(string, string)
      return string
    },
  }
}
