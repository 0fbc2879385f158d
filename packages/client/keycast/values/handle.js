// An application's handle of a key: typed events, an async iterator and a store in one.
import { checkEvent } from '../listeners.js'
import { createScope } from '../scope.js'
import { nothing } from './entry.js'

/**
 * @template [T=any]
 * @typedef {import('./entry.js').ValueState<T>} ValueState
 */

/**
 * As an async iterable it gives the state, then the latest after each change; changes during a busy loop are left out.
 * It ends when the handle is closed, and throws the error that ends the subscription.
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
  const { listen, loop, close } = createScope(entry, onClose)

  return {
    key: entry.key,
    get state() {
      return entry.state
    },
    /**
     * Calls a listener at every change, and once soon after this with the present state. Returns a function that
     * removes it.
     */
    on(name, listener) {
      checkEvent(name, 'change')
      return listen(entry.listeners, listener)
    },
    /** The contract of stores in Svelte, Solid, RxJS and React: calls the listener at once, then at every change. */
    subscribe(listener) {
      listener(entry.state)
      return listen(entry.listeners, listener, true)
    },
    getSnapshot: () => entry.state,
    [Symbol.asyncIterator]() {
      /** @type {ValueState | undefined} */
      let given
      return loop(
        () => {
          const { state, ended } = entry
          if (ended || state === nothing || state === given) return undefined
          given = state
          return state
        },
        wake => listen(entry.listeners, wake, true),
      )
    },
    /** The subscription ends with the last handle of its key. */
    close,
  }
}
