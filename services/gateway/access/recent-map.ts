// A map of bounded size that forgets entries not used lately, half of them at a time. Its cost does not grow with their
// number. Taking the oldest entry of a Map one by one does cost more and more, for each look walks over those already
// deleted.

/**
 * @template K, V
 * @param {number} sizeMax
 * @returns {RecentMap<K, V>}
 */
export function createRecentMap(sizeMax) {
  const generationMax = Math.ceil(sizeMax / 2)
  /** @type {Map<K, V>} */
  let young = new Map()
  /** @type {Map<K, V>} */
  let old = new Map()

  /** @param {K} key @param {V} value */
  function set(key, value) {
    if (young.size >= generationMax && !young.has(key)) {
      old = young
      young = new Map()
    }
    young.set(key, value)
    old.delete(key)
  }

  return {
    set,

    /** @param {K} key @returns {V | undefined} */
    get(key) {
      const held = young.get(key)
      if (held !== undefined) return held
      const older = old.get(key)
      if (older !== undefined) set(key, older)
      return older
    },

    /** @param {K} key */
    delete(key) {
      young.delete(key)
      old.delete(key)
    },

    get size() {
      return young.size + old.size
    },
  }
}

/**
 * @template K, V
 * @typedef {object} RecentMap
 * @property {(key: K, value: V) => void} set
 * @property {(key: K) => V | undefined} get
 * @property {(key: K) => void} delete
 * @property {number} size
 */
