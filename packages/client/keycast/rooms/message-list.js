// A page's view of a room: its newest messages, older ones as they are asked for, those on their way and those that
// failed. One store for all of it, so that no message is shown twice or left out between two of them.
import { KeycastError } from '../errors.js'
import { checkEvent, createListeners } from '../listeners.js'
import { randomText } from '../random.js'

/**
 * A message that was sent here and not kept, as far as the client knows.
 *
 * @template [T=any]
 * @typedef {import('./room.js').PendingMessage<T> & { error: import('../errors.js').KeycastError }} FailedMessage
 */

/**
 * The object stays the same until something of it changes.
 *
 * @template [T=any]
 * @typedef {object} MessageListState
 * @property {readonly import('./room.js').Message<T>[]} messages in their order, without a hole but for those that were
 *   deleted
 * @property {readonly import('./room.js').PendingMessage<T>[]} pending
 * @property {readonly FailedMessage<T>[]} failed
 * @property {boolean} hasOlder whether there may be messages before the first
 * @property {boolean} isLoading whether they are being asked for
 * @property {boolean} live whether messages arrive as they are published
 * @property {import('../errors.js').Health} health how the stream of messages stands
 * @property {import('../errors.js').KeycastError | undefined} error of the room, or of the last `older()`
 * @property {string | undefined} joinedAs the name under which this client is in the room
 */

/**
 * @template [T=any]
 * @typedef {ReturnType<typeof createMessageList<T>>} MessageList
 */

const LAST = 50
const KEEP = 2_000

/**
 * @template [T=any]
 * @param {{ room: (key: string, options?: import('./room.js').RoomOptions) => import('./handle.js').RoomHandle<any> }} keycast
 * @param {string} key
 * @param {object} [options]
 * @param {number | undefined} [options.last] messages at first, and with each `older()`
 * @param {number | undefined} [options.keep] above this number the oldest messages are dropped as others come;
 *   `older()` brings them back
 * @param {boolean | undefined} [options.presence] whether `room.members` should have the members
 * @param {boolean | undefined} [options.keepForbidden] whether the messages stay when the user may see them no more
 */
export function createMessageList(keycast, key, options = {}) {
  const { last = LAST, keep = KEEP, presence = false, keepForbidden } = options
  /** @type {import('./handle.js').RoomHandle<T>} */
  const room = keycast.room(key, { last, presence })
  /**
   * The position before which older messages are asked for; undefined before anything is known.
   *
   * @type {import('./room.js').Position | undefined}
   */
  let top
  /** @type {MessageListState<T>} */
  let state = Object.freeze({
    messages: [],
    pending: room.pending,
    failed: [],
    hasOlder: false,
    isLoading: false,
    live: room.state.live,
    health: room.state.health,
    error: room.state.error,
    joinedAs: room.state.joinedAs,
  })
  /** Whether messages were shown before the user lost the right to see them. */
  let wasDropped = false
  /** What was deleted while older messages are under way: they may have been read before. @type {import('./room.js').Message<T>[]} */
  let deletions = []
  let isClosed = false
  const listeners = createListeners(() => state)

  /** Those that failed as far as was known, and are not among these. @param {import('./room.js').Message<T>[]} kept */
  const failedBut = kept => state.failed.filter(failed => kept.every(({ messageId }) => messageId !== failed.messageId))

  /** @param {Partial<MessageListState<T>>} changes */
  function become(changes) {
    state = Object.freeze({ ...state, ...changes })
    listeners.tell(state)
  }

  room.on('change', ({ live, health, error, pending, joinedAs }) => {
    if (health === 'forbidden' && !keepForbidden) {
      wasDropped ||= top !== undefined
      top = undefined
      become({ messages: [], hasOlder: false, isLoading: false })
    }
    if (live && !top && room.position) {
      begin(room.position)
      if (wasDropped) older()
      wasDropped = false
    }
    become({ live, health, error, pending, joinedAs })
  })
  room.on('message', message => {
    if (message.deletes && state.isLoading) deletions.push(message)
    // To look through all of them with each message would take a long list long.
    const all = message.deletes ? shown([...state.messages, message]) : [...state.messages, ...shown([message])]
    const messages = all.slice(-keep)
    const isTrimmed = messages.length < all.length
    if (isTrimmed) top = messages[0].position
    // Older messages under way no longer stand before the first.
    become({
      messages,
      failed: failedBut([message]),
      hasOlder: state.hasOlder || isTrimmed,
      isLoading: state.isLoading && !isTrimmed,
    })
  })
  room.on('gap', ({ position }) => {
    begin(position)
    become({ messages: [], isLoading: false })
    older()
  })

  /** @param {import('./room.js').Position} position that messages follow from now on */
  function begin({ epoch, seq }) {
    top = { epoch, seq: seq + 1 }
    become({ hasOlder: seq > 0 })
  }

  async function older() {
    const before = top
    if (!before || !state.hasOlder || state.isLoading) return
    become({ isLoading: true })
    deletions = []
    try {
      const part = await room.history({ before, limit: last })
      // A gap came meanwhile, or the oldest were let go: these messages do not stand before those of now.
      if (before !== top) return
      if (part.messages.length > 0) top = part.messages[0].position
      const messages = shown([...part.messages, ...state.messages, ...deletions])
      become({ messages, failed: failedBut(part.messages), hasOlder: part.more, isLoading: false })
    } catch (error) {
      if (before === top) become({ isLoading: false, error: /** @type {any} */ (error) })
    }
  }

  /** @param {T} data @param {string} [messageId] of one that is sent again */
  async function send(data, messageId = randomText()) {
    try {
      await room.publish(data, { messageId })
    } catch (error) {
      // Nobody looks at a closed list: the message would be lost in silence.
      if (isClosed || !(error instanceof KeycastError)) throw error
      if (state.messages.some(message => message.messageId === messageId)) return
      become({ failed: [...state.failed, { messageId, data, at: Date.now(), error }] })
    }
  }

  /** @param {string} messageId @returns {FailedMessage<T> | undefined} */
  function takeFailed(messageId) {
    const found = state.failed.find(each => each.messageId === messageId)
    if (found) become({ failed: state.failed.filter(each => each !== found) })
    return found
  }

  return {
    room,
    get state() {
      return state
    },
    /** Calls a listener at every change, and once soon after this. @param {'change'} name @param {(state: MessageListState<T>) => void} listener */
    on(name, listener) {
      checkEvent(name, 'change')
      return listeners.add(listener)
    },
    /** The contract of stores: calls the listener at once, then at every change. @param {(state: MessageListState<T>) => void} listener */
    subscribe(listener) {
      listener(state)
      return listeners.add(listener, true)
    },
    getSnapshot: () => state,
    /** Loads the messages before the first. */
    older,
    /**
     * Publishes a message. One that fails is among `failed`. Rejects only where the data is not JSON, or the list was closed
     * meanwhile.
     *
     * @param {T} data
     */
    send: data => send(data),
    /** Sends a failed message again, as the same message. @param {string} messageId */
    async retry(messageId) {
      const failed = takeFailed(messageId)
      if (failed) await send(failed.data, messageId)
    },
    /** Forgets a failed message. @param {string} messageId */
    discard: messageId => void takeFailed(messageId),
    close() {
      isClosed = true
      room.close()
    },
  }
}

/**
 * Without the messages that were deleted, and those that tell of it.
 *
 * @template T
 * @param {import('./room.js').Message<T>[]} messages
 */
function shown(messages) {
  const gone = messages.flatMap(({ deletes = [] }) => deletes)
  return messages.filter(
    ({ position: { seq }, deleted, deletes }) =>
      !(deleted || deletes || gone.some(([first, last]) => first <= seq && seq <= last)),
  )
}
