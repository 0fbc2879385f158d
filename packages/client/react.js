// React: components that show a value, a room or the connection, and follow it.
import { createContext, createElement, useContext, useMemo, useSyncExternalStore } from 'react'
import { unknownMembers } from './keycast/rooms/members.js'
import { createMessageList } from './keycast/rooms/message-list.js'
import { unknownRoom } from './keycast/rooms/room.js'
import { nothing } from './keycast/values/entry.js'

/**
 * @typedef {import('./keycast.js').Keycast} Keycast
 * @typedef {import('./keycast.js').ConnectionState} ConnectionState
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast.js').ValueState<T>} ValueState
 */

/**
 * @template [T=any]
 * @typedef {import('./keycast/rooms/message-list.js').MessageListState<T>} MessageListState
 */

/**
 * The result of `useRoom` beside the list's state. The functions are the same at every render.
 *
 * @template [T=any]
 * @typedef {object} RoomOfComponent
 * @property {import('./keycast.js').MembersState} members
 * @property {import('./keycast.js').RoomHandle<T> | undefined} room undefined until the component is mounted
 * @property {(data: T) => Promise<void>} send
 * @property {() => Promise<void>} older
 * @property {(messageId: string) => Promise<void>} retry
 * @property {(messageId: string) => void} discard
 * @property {(name: string, claim?: string | undefined) => Promise<import('./keycast.js').Join>} join
 * @property {() => Promise<void>} leave
 */

const Context = createContext(/** @type {Keycast | undefined} */ (undefined))

/**
 * Gives the components inside it a client. On a server nothing connects, so `keycast` may be left out.
 *
 * @param {{ keycast?: Keycast | undefined, children?: import('react').ReactNode }} props
 */
export function KeycastProvider({ keycast, children }) {
  return createElement(Context.Provider, { value: keycast }, children)
}

/**
 * The state of the connection. On a server nothing connects, so it is `connecting`.
 *
 * @returns {ConnectionState}
 */
export function useConnection() {
  const keycast = useContext(Context)
  const store = useMemo(
    () => ({
      /** @param {() => void} listener */
      subscribe(listener) {
        if (!keycast) throw new Error('useConnection needs a KeycastProvider with a client around it')
        return keycast.on('state', listener)
      },
      getSnapshot: () => keycast?.state ?? connecting,
    }),
    [keycast],
  )
  return useSyncExternalStore(store.subscribe, store.getSnapshot, () => connecting)
}

/** @type {ConnectionState} */
const connecting = Object.freeze({ name: 'connecting' })

/**
 * Subscribes to a key for as long as the component is mounted, and renders it anew at every change.
 *
 * @template [T=any]
 * @param {string | undefined} key undefined: subscribes to nothing
 * @param {T} [serverValue] rendered by a server, and by the page until the live value is there
 * @returns {ValueState<T>}
 */
export function useValue(key, serverValue) {
  const keycast = useContext(Context)
  const store = useMemo(() => storeOf(keycast, key), [keycast, key])
  const state = useSyncExternalStore(store.subscribe, store.getSnapshot, () => nothing)
  // React needs the same object again if nothing changed.
  return useMemo(
    () => (serverValue === undefined || !isBlank(state) ? state : { ...state, value: serverValue }),
    [serverValue, state],
  )
}

/** Whether nothing is known yet. @param {ValueState} state */
const isBlank = ({ version, error }) => version === undefined && error === undefined

/** @param {Keycast | undefined} keycast @param {string | undefined} key */
function storeOf(keycast, key) {
  return {
    /** @param {() => void} listener */
    subscribe(listener) {
      if (key === undefined) return () => {}
      if (!keycast) throw new Error('useValue needs a KeycastProvider with a client around it')
      const handle = keycast.value(key)
      handle.subscribe(listener)
      return handle.close
    },
    getSnapshot: () => (key === undefined ? nothing : (keycast?.peek(key) ?? nothing)),
  }
}

/** @type {Readonly<import('./keycast/rooms/message-list.js').MessageListState>} */
const emptyRoom = Object.freeze({ ...unknownRoom, messages: [], failed: [], hasOlder: false, isLoading: false })

/**
 * Follows a room for as long as the component is mounted: its messages, its members, and its own publishes.
 *
 * @template [T=any]
 * @param {string} key
 * @param {{ last?: number | undefined, keep?: number | undefined, presence?: boolean | undefined }} [options] as of
 *   `createMessageList`
 * @returns {MessageListState<T> & RoomOfComponent<T>}
 */
export function useRoom(key, { last, keep, presence } = {}) {
  const keycast = useContext(Context)
  const store = useMemo(() => roomStoreOf(keycast, key, { last, keep, presence }), [keycast, key, last, keep, presence])
  const state = useSyncExternalStore(store.subscribe, store.getSnapshot, () => emptyRoom)
  const members = useSyncExternalStore(store.subscribeMembers, store.getMembers, () => unknownMembers)
  return { ...state, members, room: store.room(), ...store.deeds }
}

/**
 * The list is made when the first component subscribes and closed with the last. A render alone opens nothing, for
 * React renders at will.
 *
 * @param {Keycast | undefined} keycast
 * @param {string} key
 * @param {{ last?: number | undefined, keep?: number | undefined, presence?: boolean | undefined }} options
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

  /** A message must not get lost in silence. */
  function mounted() {
    if (!list) throw new Error(`useRoom(${key}): the component is not mounted`)
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
    getMembers: () => list?.room.members.state ?? unknownMembers,
    room: () => list?.room,
    deeds: {
      send: async (/** @type {any} */ data) => mounted().send(data),
      older: async () => list?.older(),
      retry: async (/** @type {string} */ messageId) => mounted().retry(messageId),
      discard: (/** @type {string} */ messageId) => list?.discard(messageId),
      join: async (/** @type {string} */ name, /** @type {string | undefined} */ claim) =>
        mounted().room.join(name, claim),
      leave: async () => list?.room.leave(),
    },
  }
}
