// An application's handle of a room: typed events, an async iterator and stores in one.
import { checkEvent, createListeners } from '../listeners.js'
import { createScope } from '../scope.js'

/**
 * @typedef {import('./room.js').Gap} Gap
 * @typedef {import('./room.js').Position} Position
 * @typedef {import('./members.js').MembersState} MembersState
 *
 * Who is there, for a handle that was opened with `presence`.
 * @typedef {object} MembersStore
 * @property {MembersState} state
 * @property {(name: 'change', listener: (state: MembersState) => void) => () => void} on
 * @property {(listener: (state: MembersState) => void) => () => void} subscribe
 * @property {() => MembersState} getSnapshot
 */

/**
 * As an async iterable it gives each message, in order, and gaps. A loop that is further behind than `bufferMessages`
 * gets a gap in place of the messages that it missed. It ends when the handle is closed, and throws the error that ends
 * the subscription. After `forbidden` it goes on.
 *
 * @template [T=any]
 * @typedef {AsyncIterable<import('./room.js').Message<T> | Gap> & {
 *   readonly key: string,
 *   readonly state: import('./room.js').RoomState<T>,
 *   readonly position: Position | undefined,
 *   readonly pending: readonly import('./room.js').PendingMessage<T>[],
 *   readonly members: MembersStore,
 *   on: {
 *     (name: 'message', listener: (message: import('./room.js').Message<T>) => void): () => void,
 *     (name: 'gap', listener: (gap: Gap) => void): () => void,
 *     (name: 'change', listener: (state: import('./room.js').RoomState<T>) => void): () => void,
 *   },
 *   subscribe: (listener: (state: import('./room.js').RoomState<T>) => void) => () => void,
 *   getSnapshot: () => import('./room.js').RoomState<T>,
 *   retry: () => void,
 *   publish: (data: T, options?: import('./publishes.js').PublishOptions) => Promise<import('./publishes.js').Published>,
 *   history: (options?: import('./rooms.js').HistoryOptions) => Promise<import('./rooms.js').History<T>>,
 *   join: (name: string, claim?: string) => Promise<import('./membership.js').Join>,
 *   leave: () => Promise<void>,
 *   close: () => void,
 * }} RoomHandle
 */

const BUFFER_MESSAGES = 1_000

/**
 * @param {object} deps
 * @param {import('./room.js').Room} deps.room
 * @param {import('./room.js').Reader} deps.reader
 * @param {boolean} deps.follow
 * @param {number} [deps.bufferMessages]
 * @param {() => void} deps.retry
 * @param {() => void} deps.onClose is called once
 * @param {RoomHandle['publish']} deps.publish
 * @param {RoomHandle['history']} deps.history
 * @param {RoomHandle['join']} deps.join
 * @param {RoomHandle['leave']} deps.leave
 * @returns {RoomHandle}
 */
export function createRoomHandle({ room, reader, follow, bufferMessages = BUFFER_MESSAGES, ...deeds }) {
  const { retry, onClose, publish, history, join, leave } = deeds
  const { listen, loop, close } = createScope(room, onClose)
  const untold = () => undefined
  const events = {
    message: createListeners(untold),
    gap: createListeners(untold),
    change: room.listeners,
  }
  reader.take = item => events[item.type].tell(/** @type {any} */ (item))

  /**
   * The contract that stores in React, Svelte, Solid and RxJS share.
   *
   * @param {{ readonly state: any, listeners: import('../listeners.js').Listeners }} source
   */
  const storeOf = source => ({
    /** @param {(state: any) => void} listener */
    subscribe(listener) {
      listener(source.state)
      return listen(source.listeners, listener, true)
    },
    getSnapshot: () => source.state,
  })

  const { members } = room
  return {
    key: room.key,
    get state() {
      return room.state
    },
    /** The position of the last message given: a program that ends here can start again after it. */
    get position() {
      return reader.position
    },
    get pending() {
      return room.state.pending
    },
    members: {
      get state() {
        return members.state
      },
      on(name, listener) {
        checkEvent(name, 'change')
        return listen(members.listeners, listener)
      },
      ...storeOf(members),
    },
    on(/** @type {keyof typeof events} */ name, /** @type {(item: any) => void} */ listener) {
      if (!(name in events)) throw new TypeError(`a room has no event "${name}"`)
      return listen(/** @type {any} */ (events[name]), listener)
    },
    ...storeOf(room),
    [Symbol.asyncIterator]() {
      // No message would ever come.
      if (!follow) throw new TypeError('this handle follows nothing: open one without "follow: false"')
      /** @type {any[]} */
      let queue = []
      /** Its oldest part, the next item last: to shift a long list moves all of it. @type {any[]} */
      let next = []
      return loop(
        () => {
          if (!next.length) {
            next = queue.reverse()
            queue = []
          }
          return next.pop()
        },
        wake => {
          /** @param {any} item */
          const push = item => {
            // A part must not pass for the whole: a gap names the messages that the loop missed.
            if (queue.length + next.length >= bufferMessages) {
              const { oldest, position } = next.at(-1) ?? queue[0]
              queue = [{ type: 'gap', position: item.position, oldest: oldest ?? position, reason: 'slow' }]
              next = []
            } else queue.push(item)
            wake()
          }
          const ends = [listen(events.message, push), listen(events.gap, push), listen(room.listeners, wake, true)]
          return () => {
            for (const end of ends) end()
          }
        },
      )
    },
    /** Asks the gateway now for the room, and for the membership, also after an error that ended them. */
    retry,
    publish,
    history,
    join,
    leave,
    /** The subscription ends with the last handle of its room. Publishes under way still get their outcome. */
    close,
  }
}
