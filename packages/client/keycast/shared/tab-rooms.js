// A tab's rooms: what a handle shows of a room, and what it publishes.
import { createListeners } from '../listeners.js'
import { randomText } from '../random.js'
import { createRoomHandle } from '../rooms/handle.js'
import { unknownMembers } from '../rooms/members.js'
import { asJson, createDeadline, DEADLINE_MS } from '../rooms/publishes.js'
import { checkOptions, positionOf, unknownRoom } from '../rooms/room.js'
import { unpackError } from './messages.js'

const clocks = { now: () => performance.now(), date: () => Date.now() }

/** @param {import('./tab.js').Worker} worker */
export function createTabRooms({ link, open, shut, say, call }) {
  /** @param {string} key @param {import('../rooms/room.js').RoomOptions} [options] */
  return function room(key, { after, last, presence = false, follow = true, bufferMessages } = {}) {
    checkOptions({ after, last, bufferMessages })
    /**
     * Published by this handle and under way. The worker says nothing of them: all of them with each change would be
     * gigabytes where a thousand wait.
     *
     * @type {Map<string, import('../rooms/room.js').PendingMessage>}
     */
    const mine = new Map()
    /** The name and the claim by which it is in the room. @type {any[] | undefined} */
    let join
    /** @type {import('../rooms/room.js').Reader} */
    const reader = { position: undefined, last, presence, take() {} }
    // Copied: a port carries no proxy, as frameworks make one of what they watch.
    if (after) reader.position = positionOf(after.epoch, after.seq)
    /** @type {any} */
    const members = {
      state: unknownMembers,
      listeners: createListeners(() => (members.state.count === undefined ? undefined : members.state)),
    }
    /** @type {any} */
    const shared = {
      key,
      link,
      members,
      state: unknownRoom,
      listeners: createListeners(() => shared.state),
      get ended() {
        return shared.state.health === 'ended'
      },
    }
    /** @param {Partial<import('../rooms/room.js').RoomState>} changes */
    const show = changes => {
      if (Object.entries(changes).every(([name, value]) => value === shared.state[name])) return
      shared.state = Object.freeze({ ...shared.state, ...changes })
      shared.listeners.tell(shared.state)
    }
    /** @param {string} messageId */
    const settled = messageId => {
      if (mine.delete(messageId)) show({ pending: [...mine.values()] })
    }
    const id = open({
      ask() {
        const { position } = reader
        return { key, room: { after: position, last: position ? undefined : last, presence, follow }, join }
      },
      take({ item, state, position, members: present }) {
        if (present) {
          members.state = present
          members.listeners.tell(present)
        } else if (item) {
          reader.position = item.position = positionOf(item.position.epoch, item.position.seq)
          // It may come before the answer to its publish: shown as both it would be there twice.
          settled(item.messageId)
          reader.take(item)
        } else {
          reader.position ??= position
          // Another has the name: a worker that comes next is not asked for it.
          if (state.error?.code === 'name_taken') join = undefined
          show({ ...state, joinedAs: join && state.joinedAs, error: state.error && unpackError(state.error) })
        }
      },
      wait() {
        if (!shared.ended) show({ live: false, health: 'loading' })
      },
      end(error) {
        show({ live: false, error, health: 'ended' })
      },
    })
    return createRoomHandle({
      room: /** @type {any} */ (shared),
      reader,
      follow,
      bufferMessages,
      retry: () => say({ retry: id }),
      onClose: () => shut(id),
      async publish(data, { messageId = randomText(), deadlineMs = DEADLINE_MS } = {}) {
        // As JSON has it, which a port would not carry in any case.
        const copy = asJson(data)
        const leftMs = createDeadline(clocks, deadlineMs)
        const published = call('publish', [key, copy, { messageId, deadlineMs }], undefined, undefined, leftMs)
        mine.set(messageId, { messageId, data: copy, at: Date.now() })
        show({ pending: [...mine.values()] })
        return published.finally(() => settled(messageId))
      },
      // As JSON, which reads through the proxies of frameworks.
      history: async ({ signal, ...part } = {}) =>
        call('history', [key, JSON.parse(JSON.stringify(part))], undefined, signal),
      async join(name, claim) {
        const joined = await call('join', [name, claim], id)
        join = [joined.name, joined.claim]
        // The room's state came before this answer, when it was not known whose name it is.
        show({ joinedAs: joined.name })
        return joined
      },
      async leave() {
        join = undefined
        show({ joinedAs: undefined })
        await call('leave', [], id)
      },
    })
  }
}
