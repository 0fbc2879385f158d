// React: components that show a value or a room, and follow it.
import { createContext, createElement, useContext, useMemo, useSyncExternalStore } from 'react'
import { createMessageList } from './keycast/rooms/message-list.js'

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

/** @type {Readonly<import('./keycast/rooms/message-list.js').MessageListState>} */
const emptyRoom = Object.freeze({
  messages: [],
  pending: [],
  failed: [],
  hasOlder: false,
  isLoading: false,
  live: false,
  error: undefined,
})

/** @type {Readonly<import('./keycast.js').MembersState>} */
const nobody = Object.freeze({ count: undefined, members: undefined })

const nowhere = async () => {}

/**
 * Follows a room for as long as the component is mounted: its messages, who is there, and what was sent from here.
 *
 * @template [T=any]
 * @param {string} key
 * @param {{ last?: number, keep?: number, presence?: boolean }} [options] as of `createMessageList`
 */
export function useRoom(key, { last, keep, presence } = {}) {
  const keycast = useContext(Context)
  const store = useMemo(() => roomStoreOf(keycast, key, { last, keep, presence }), [keycast, key, last, keep, presence])
  const state = useSyncExternalStore(store.subscribe, store.getSnapshot, () => emptyRoom)
  const members = useSyncExternalStore(store.subscribeMembers, store.getMembers, () => nobody)
  return {
    .../** @type {import('./keycast/rooms/message-list.js').MessageListState<T>} */ (state),
    members,
    ...store.deeds,
  }
}

/**
 * The list is made when the first component subscribes and closed with the last: a render alone, as React makes them at
 * will, opens nothing.
 *
 * @param {Keycast | undefined} keycast @param {string} key @param {{ last?: number, keep?: number, presence?: boolean }} options
 */
function roomStoreOf(keycast, key, options) {
  /** @type {import('./keycast/rooms/message-list.js').MessageList | undefined} */
  let list
  let users = 0

  function open() {
    if (!keycast) throw new Error('useRoom needs a KeycastProvider with a client around it')
    users += 1
    list ??= createMessageList(keycast, key, options)
    return list
  }

  /** @param {() => void} remove */
  const closing = remove => () => {
    remove()
    users -= 1
    if (users > 0) return
    list?.close()
    list = undefined
  }

  return {
    subscribe: (/** @type {() => void} */ listener) => closing(open().subscribe(listener)),
    subscribeMembers: (/** @type {() => void} */ listener) => closing(open().room.members.subscribe(listener)),
    getSnapshot: () => list?.state ?? emptyRoom,
    getMembers: () => list?.room.members.state ?? nobody,
    /** The same functions at every render. */
    deeds: {
      /** @param {any} data */
      send: data => list?.send(data) ?? nowhere(),
      older: () => list?.older() ?? nowhere(),
      /** @param {string} messageId */
      retry: messageId => list?.retry(messageId) ?? nowhere(),
      /** @param {string} messageId */
      discard: messageId => list?.discard(messageId),
      /** @param {string} name @param {string} [claim] */
      join: async (name, claim) => list?.room.join(name, claim),
      leave: async () => list?.room.leave(),
    },
  }
}
