// Random numbers from a seed, so that a failed test can be repeated.

/**
 * Numbers from 0 to 1, the same for the same seed. mulberry32: small, and good enough to scatter bytes.
 *
 * @param {number} seed
 * @returns {() => number}
 */
export function randomNumbers(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * @param {number} seed
 */
export function createRandom(seed) {
  const next = randomNumbers(seed)
  /** @param {number} below */
  const integer = below => Math.floor(next() * below)
  /** @param {number} length */
  const bytes = length => Buffer.from(Array.from({ length }, () => integer(256)))

  return {
    bytes,
    integer,

    /** @template T @param {T[]} list @returns {T} */
    pick: list => list[integer(list.length)],

    /**
     * One to three changes of some bytes: one flipped, some left out, some doubled, some put in.
     *
     * @param {Buffer} original
     */
    mutate(original) {
      let mutated = Buffer.from(original)
      for (let change = integer(3); change >= 0; change -= 1) {
        const at = integer(mutated.length + 1)
        const to = Math.min(mutated.length, at + 1 + integer(8))
        const before = mutated.subarray(0, at)
        const pieces = [
          [before, Buffer.from([integer(128)]), mutated.subarray(at + 1)],
          [before, mutated.subarray(to)],
          [mutated.subarray(0, to), mutated.subarray(at)],
          [before, bytes(1 + integer(4)), mutated.subarray(at)],
        ]
        mutated = Buffer.concat(pieces[integer(pieces.length)])
      }
      return mutated
    },
  }
}
