// What links are still to be told of keys that no entry is held of. Bounded as the hub's own set of what a link lacks.

/**
 * @typedef {import('@keycast/backbone').FailedAnswer} FailedAnswer
 *
 * @typedef {'watch' | 'fetch'} Wish
 * @typedef {{ answer: FailedAnswer, wishes: Set<Wish> }} Refusal
 */

export function createRefusals() {
  /** With what each is refused: a link may both watch a key and wait for it. @type {Map<string, Map<string, Refusal>>} */
  const byLink = new Map()

  /** @param {string} link @param {string} key */
  function forget(link, key) {
    const refusals = byLink.get(link)
    if (refusals?.delete(key) && refusals.size === 0) byLink.delete(link)
  }

  return {
    /** @param {string} link @param {FailedAnswer} answer @param {Wish} wish it refuses, beside one refused already */
    add(link, answer, wish) {
      const refusals = byLink.get(link) ?? new Map()
      byLink.set(link, refusals)
      const wishes = refusals.get(answer.key)?.wishes ?? new Set()
      refusals.set(answer.key, { answer, wishes: wishes.add(wish) })
    },

    /** The link has no such wish any more: nothing is to be told of it. @param {string} link @param {string} key @param {Wish} wish */
    withdraw(link, key, wish) {
      const wishes = byLink.get(link)?.get(key)?.wishes
      if (wishes?.delete(wish) && wishes.size === 0) forget(link, key)
    },

    /**
     * The key can be had after all: nothing is to be told of a refusal.
     *
     * @param {string} link
     * @param {string} key
     * @param {Wish} wish that is granted
     * @returns {boolean} whether the other one was refused before, which is to be granted, too
     */
    forgive(link, key, wish) {
      const wishes = byLink.get(link)?.get(key)?.wishes
      forget(link, key)
      return wishes?.has(wish === 'watch' ? 'fetch' : 'watch') === true
    },

    /** @param {string} link @param {string} key @returns {FailedAnswer | undefined} to be told now */
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
