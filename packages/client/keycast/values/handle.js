// An application's handle of a key: typed events, an async iterator and a store in one.
import { checkEvent } from '../listeners.js'
import { createScope } from '../scope.js'

/**
 * @template [T=any]
 * @typedef {import('./entry.js').ValueState<T>} ValueState
 */

/**
 * As an async iterable it gives the state, then the latest after each change but of `health`; changes during a busy
 * loop are left out. It ends when the handle is closed, and throws the error that ends the subscription. After
 * `forbidden` it goes on.
 *
 * @template [T=any]
 * @typedef {AsyncIterable<ValueState<T>> & {
 *   readonly key: string,
 *   readonly state: ValueState<T>,
 *   on: (name: 'change', listener: (state: ValueState<T>) => void) => () => void,
 *   subscribe: (listener: (state: ValueState<T>) => void) => () => void,
 *   getSnapshot: () => ValueState<T>,
 *   order: () => number | undefined,
 *   retry: () => void,
 *   close: () => void,
 * }} ValueHandle
 */

/**
 * @param {import('./entry.js').Entry} entry
 * @param {(entry: import('./entry.js').Entry) => void} ask
 * @param {() => void} onClose is called once
 * @returns {ValueHandle}
 */
export function createHandle(entry, ask, onClose) {
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
    /** The number of the value that came last, for a client that goes on in this one's place. */
    order: () => entry.order,
    /** Asks the gateway now how the key stands, also after an error that ended the subscription. */
    retry: () => ask(entry),
    [Symbol.asyncIterator]() {
      /** @type {ValueState | undefined} */
      let given
      return loop(
        () => {
          const { state, news, ended } = entry
          if (ended || news === given) return undefined
          given = news
          return state
        },
        wake => listen(entry.listeners, wake, true),
      )
    },
    /** The subscription ends with the last handle of its key. */
    close,
  }
}
