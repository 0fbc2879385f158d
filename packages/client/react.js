// React: a component that shows a key's value and follows it.
import { createContext, createElement, useContext, useMemo, useSyncExternalStore } from 'react'

/**
 * @typedef {import('./keycast.js').Keycast} Keycast
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast.js').ValueState<T>} ValueState
 */

const Context = createContext(/** @type {Keycast | undefined} */ (undefined))

/** @type {Readonly<ValueState>} */
const nothing = Object.freeze({
  value: undefined,
  version: undefined,
  contentType: undefined,
  sizeBytes: undefined,
  stale: false,
  error: undefined,
  changedAt: undefined,
})

/**
 * Gives the components inside it a client. On a server, where nothing connects, `keycast` may be left out.
 *
 * @param {{ keycast?: Keycast, children?: import('react').ReactNode }} props
 */
export function KeycastProvider({ keycast, children }) {
  return createElement(Context.Provider, { value: keycast }, children)
}

/**
 * Subscribes to a key for as long as the component is mounted, and renders it anew at every change.
 *
 * @template [T=any]
 * @param {string} key
 * @param {T} [serverValue] what a server renders and the page starts from, until the live value is there
 * @returns {ValueState<T>}
 */
export function useValue(key, serverValue) {
  const keycast = useContext(Context)
  const store = useMemo(() => storeOf(keycast, key), [keycast, key])
  // React asks for the same object again where nothing changed.
  const initial = useMemo(
    () => (serverValue === undefined ? nothing : { ...nothing, value: serverValue }),
    [serverValue],
  )
  const state = useSyncExternalStore(store.subscribe, store.getSnapshot, () => nothing)
  return isBlank(state) ? initial : state
}

/** Whether nothing is known yet. @param {ValueState} state */
const isBlank = ({ version, error }) => version === undefined && error === undefined

/** @param {Keycast | undefined} keycast @param {string} key */
function storeOf(keycast, key) {
  return {
    /** @param {() => void} listener */
    subscribe(listener) {
      if (!keycast) throw new Error('useValue needs a KeycastProvider with a client around it')
      const handle = keycast.value(key)
      handle.subscribe(listener)
      return handle.close
    },
    getSnapshot: () => keycast?.peek(key) ?? nothing,
  }
}
