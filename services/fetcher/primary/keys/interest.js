// Which keys each link has a say in, so that a link that is lost costs its own keys and not a walk over all of them.

/** @typedef {import('./entry.js').Entry} Entry */

export function createLinkKeys() {
  /** Links that want something, with what they watch or wait for. @type {Map<string, Set<Entry>>} */
  const byLink = new Map()

  return {
    /** @param {string} link @param {Entry} entry that it watches or waits for now */
    add(link, entry) {
      const entries = byLink.get(link)
      if (entries) entries.add(entry)
      else byLink.set(link, new Set([entry]))
    },

    /**
     * To be called whenever a link watches or waits no more: it may still do the other.
     *
     * @param {string} link
     * @param {Entry} entry
     */
    review(link, entry) {
      if (entry.watchers.has(link) || entry.waiters.has(link)) return
      const entries = byLink.get(link)
      if (entries?.delete(entry) && entries.size === 0) byLink.delete(link)
    },

    /** @param {string} link that is lost @returns {Iterable<Entry>} what it wanted */
    take(link) {
      const entries = byLink.get(link) ?? []
      byLink.delete(link)
      return entries
    },
  }
}
