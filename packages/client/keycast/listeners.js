// The listeners of one thing. A new one is also told the present state.

/**
 * @typedef {ReturnType<typeof createListeners<any>>} Listeners
 */

/**
 * @param {string} name the listeners' owner
 * @param {string} known the only event there is
 */
export function checkEvent(name, known) {
  if (name !== known) throw new TypeError(`the event is "${known}"`)
}

/**
 * @template T
 * @param {() => T | undefined} present the present state; undefined if there is none yet
 */
export function createListeners(present) {
  /** @typedef {{ listener: (state: T) => void, heard: T | false | undefined }} Place */
  /** @type {Set<Place>} */
  const places = new Set()

  /** @param {Place} place @param {T} [told] */
  function call(place, told) {
    // A listener that was called before this one may have changed things: the older state would be heard last.
    const state = present() ?? told
    if (!state || state === place.heard || !places.has(place)) return
    place.heard = state
    try {
      place.listener(state)
    } catch (error) {
      // A listener's fault is reported as its own. Thrown here it would stop the other listeners and the connection.
      queueMicrotask(() => {
        throw error
      })
    }
  }

  return {
    /**
     * @param {(state: T) => void} listener called at every change, and once soon after this with the present state
     * @param {boolean} [isTold] whether it knows the present state already
     * @returns {() => void} takes the listener off
     */
    add(listener, isTold) {
      const place = { listener, heard: isTold && present() }
      places.add(place)
      // Later, so that the caller holds what this returns when its listener runs.
      queueMicrotask(() => call(place))
      return () => places.delete(place)
    },
    /** @param {T} state */
    tell(state) {
      for (const place of [...places]) call(place, state)
    },
  }
}
