// Wants of links that cannot be met, until each link is sent why. No entry is held of such a key: mostly because there
// is no room for one more (`capacity`), or because a gateway that read a newer configuration knows a namespace which
// this node does not. Bounded as the hub's own set of what a link is due.

/**
 * @typedef {import('@keycast/backbone').FailedAnswer} FailedAnswer
 * @typedef {import('../keys/interest.js').Want} Want
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

    /** The link has no such want any more: it is sent nothing about it. @param {string} link @param {string} key @param {Want} want */
    withdraw(link, key, want) {
      const wants = byLink.get(link)?.get(key)?.wants
      if (wants?.delete(want) && wants.size === 0) forget(link, key)
    },

    /**
     * The key can be had after all: the link is not sent that it was refused.
     *
     * @param {string} link
     * @param {string} key
     * @param {Want} want that is granted
     * @returns {boolean} whether the other one was refused before, which is to be granted, too
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
