// Wants that this node refuses, until each link is told the reason. Such a key has no entry. Mostly there is no room
// for one (`capacity`), or a gateway with a newer configuration names a namespace that this node does not know. Bounded
// like the hub's own set of due keys.

/**
 * @typedef {import('@keycast/backbone').FailedAnswer} FailedAnswer
 * @typedef {import('../keys/interest.ts').Want} Want
 *
 * `wants`: a link may both watch a key and wait for it.
 * @typedef {{ answer: FailedAnswer, wants: Set<Want> }} Refusal
 */

export function createRefusedWants() {
  /** By link and key. @type {Map<string, Map<string, Refusal>>} */
  const byLink = new Map()

  /** @param {string} link @param {string} key */
  function forget(link, key) {
    const refusals = byLink.get(link)
    if (refusals?.delete(key) && refusals.size === 0) byLink.delete(link)
  }

  return {
    /** @param {string} link @param {FailedAnswer} answer @param {Want} want that is refused, beside one refused already */
    add(link, answer, want) {
      const refusals = byLink.get(link) ?? new Map()
      byLink.set(link, refusals)
      const wants = refusals.get(answer.key)?.wants ?? new Set()
      refusals.set(answer.key, { answer, wants: wants.add(want) })
    },

    /**
     * The link dropped this want: it is told nothing about it.
     *
     * @param {string} link @param {string} key @param {Want} want
     */
    withdraw(link, key, want) {
      const wants = byLink.get(link)?.get(key)?.wants
      if (wants?.delete(want) && wants.size === 0) forget(link, key)
    },

    /**
     * The key can be served after all: the link is not told of the refusal.
     *
     * @param {string} link
     * @param {string} key
     * @param {Want} want granted now
     * @returns {boolean} whether the link's other want was refused before, and should be granted, too
     */
    forgive(link, key, want) {
      const wants = byLink.get(link)?.get(key)?.wants
      forget(link, key)
      return wants?.has(want === 'watch' ? 'get' : 'watch') === true
    },

    /** @param {string} link @param {string} key @returns {FailedAnswer | undefined} to be sent now */
    take(link, key) {
      const answer = byLink.get(link)?.get(key)?.answer
      forget(link, key)
      return answer
    },

    /** @param {string} link */
    dropLink(link) {
      byLink.delete(link)
    },
  }
}
