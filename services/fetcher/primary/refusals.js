// What links are still to be told of keys that no entry is held of. Bounded as the hub's own set of what a link lacks.

/**
 * @typedef {import('@keycast/backbone').FailedAnswer} FailedAnswer
 */

export function createRefusals() {
  /** @type {Map<string, Map<string, FailedAnswer>>} */
  const byLink = new Map()

  return {
    /** @param {string} link @param {FailedAnswer} refusal */
    add(link, refusal) {
      const refusals = byLink.get(link)
      if (refusals) refusals.set(refusal.key, refusal)
      else byLink.set(link, new Map([[refusal.key, refusal]]))
    },

    /**
     * Also to be called when the link's interest changes: a refusal belongs to the interest that brought it about.
     *
     * @param {string} link
     * @param {string} key
     * @returns {FailedAnswer | undefined}
     */
    take(link, key) {
      const refusals = byLink.get(link)
      const refusal = refusals?.get(key)
      if (refusals?.delete(key) && refusals.size === 0) byLink.delete(link)
      return refusal
    },

    /** @param {string} link */
    dropLink(link) {
      byLink.delete(link)
    },
  }
}
