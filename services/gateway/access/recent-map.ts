// A map of bounded size that forgets entries not used lately, half of them at a time. Its cost does not grow with their
// number. Taking the oldest entry of a Map one by one does cost more and more, for each look walks over those already
// deleted.

export function createRecentMap<K, V>(sizeMax: number): RecentMap<K, V> {
  const generationMax = Math.ceil(sizeMax / 2)
  let young = new Map<K, V>()
  let old = new Map<K, V>()

  function set(key: K, value: V) {
    if (young.size >= generationMax && !young.has(key)) {
      old = young
      young = new Map()
    }
    young.set(key, value)
    old.delete(key)
  }

  return {
    set,

    get(key: K): V | undefined {
      const held = young.get(key)
      if (held !== undefined) return held
      const older = old.get(key)
      if (older !== undefined) set(key, older)
      return older
    },

    delete(key: K) {
      young.delete(key)
      old.delete(key)
    },

    get size() {
      return young.size + old.size
    },
  }
}

export interface RecentMap<K, V> {
  set: (key: K, value: V) => void
  get: (key: K) => V | undefined
  delete: (key: K) => void
  size: number
}
