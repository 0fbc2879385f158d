// A handle, which an application holds of a key: typed events, an async iterator and a store in one.
import { checkEvent } from '../listeners.js'
import { nothing } from './entry.js'

/**
 * @template [T=any]
 * @typedef {import('./entry.js').ValueState<T>} ValueState
 */

/**
 * As an async iterable it gives the state, then the latest after each change: those that came while the loop was busy are
 * left out. It ends when the handle is closed, and throws the error that ends the subscription.
 *
 * @template [T=any]
 * @typedef {AsyncIterable<ValueState<T>> & {
 *   readonly key: string,
 *   readonly state: ValueState<T>,
 *   on: (name: 'change', listener: (state: ValueState<T>) => void) => () => void,
 *   subscribe: (listener: (state: ValueState<T>) => void) => () => void,
 *   getSnapshot: () => ValueState<T>,
 *   close: () => void,
 * }} ValueHandle
 */

/**
 * @param {import('./entry.js').Entry} entry
 * @param {() => void} onClose is called once
 * @returns {ValueHandle}
 */
export function createHandle(entry, onClose) {
  /** Undone at the close: listeners and loops. @type {Set<() => void>} */
  const ends = new Set()
  let closed = false

  /** @param {(state: ValueState) => void} listener @param {boolean} [isTold] whether it knows how the key stands */
  function listen(listener, isTold) {
    if (closed) return () => {}
    const remove = entry.listeners.add(listener, isTold)
    ends.add(remove)
    return () => {
      ends.delete(remove)
      remove()
    }
  }

  return {
    key: entry.key,
    get state() {
      return entry.state
    },
    /** Calls a listener at every change, and once soon after this with what is known. Returns what takes it off. */
    on(name, listener) {
      checkEvent(name, 'change')
      return listen(listener)
    },
    /** The contract of stores in Svelte, Solid, RxJS and React: calls the listener at once, then at every change. */
    subscribe(listener) {
      listener(entry.state)
      return listen(listener, true)
    },
    getSnapshot: () => entry.state,
    [Symbol.asyncIterator]() {
      /** @type {ValueState | undefined} */
      let given
      let done = closed
      let wake = () => {}
      const end = () => {
        done = true
        ends.delete(end)
        remove()
        wake()
      }
      const remove = listen(() => wake(), true)
      ends.add(end)
      return {
        async next() {
          for (;;) {
            if (done) return { done, value: undefined }
            const { state, ended, wasClosed } = entry
            if (ended) {
              end()
              if (wasClosed) continue
              throw state.error
            }
            if (state !== nothing && state !== given) {
              given = state
              return { done: false, value: state }
            }
            await /** @type {Promise<void>} */ (
              new Promise(resolve => {
                wake = resolve
              })
            )
          }
        },
        async return() {
          end()
          return { done: true, value: undefined }
        },
      }
    },
    /** The subscription ends with the last handle of its key. */
    close() {
      if (closed) return
      closed = true
      for (const end of ends) end()
      onClose()
    },
  }
}
