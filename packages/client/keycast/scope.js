// Everything that one handle holds open, of a value or of a room: its listeners and loops. All of it ends with the handle.

/**
 * The state that all handles of a key share. `ended`: the subscription is over.
 * @typedef {{ readonly state: any, readonly ended: unknown, link: import('./client.js').Link }} Shared
 */

/**
 * @param {Shared} shared
 * @param {() => void} onClose is called once
 */
export function createScope(shared, onClose) {
  /** @type {Set<() => void>} */
  const ends = new Set()
  let closed = false

  /** @param {() => void} undo is called once, at the close or before @returns {() => void} calls it now */
  function own(undo) {
    const end = () => {
      if (ends.delete(end)) undo()
    }
    ends.add(end)
    if (closed) end()
    return end
  }

  return {
    /**
     * @param {import('./listeners.js').Listeners} listeners
     * @param {(state: any) => void} listener
     * @param {boolean} [isTold] whether it knows how things stand
     */
    listen: (listeners, listener, isTold) => own(listeners.add(listener, isTold)),

    /**
     * An iterator, which gives what there is to take until the subscription or the handle ends.
     *
     * @param {() => any} take gives what comes next; undefined where it is still to come
     * @param {(wake: () => void) => () => void} watch lets the loop look again at each change; returns what ends that
     */
    loop(take, watch) {
      let wake = () => {}
      const stop = watch(() => wake())
      const end = own(() => {
        stop()
        wake()
      })
      async function* items() {
        while (ends.has(end)) {
          const item = take()
          if (item) yield item
          else if (shared.ended) {
            end()
            if (!shared.link.isClosed) throw shared.state.error
          } else {
            await /** @type {Promise<void>} */ (
              new Promise(resolve => {
                wake = resolve
              })
            )
          }
        }
      }
      const iterator = items()
      return {
        next: () => iterator.next(),
        // A loop that waits is woken, or its iterator would end only after the next item.
        return() {
          end()
          return iterator.return()
        },
      }
    },

    close() {
      if (closed) return
      closed = true
      for (const end of ends) end()
      onClose()
    },
  }
}
