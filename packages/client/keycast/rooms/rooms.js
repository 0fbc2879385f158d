// The rooms that an application follows, publishes into or has joined: takes the gateway's messages about them.
import { backoffMs } from '../connection/backoff.js'
import { endOf, KeycastError } from '../errors.js'
import { badKey } from '../requests.js'
import { createSubscriber } from '../subscriber.js'
import { createRoomHandle } from './handle.js'
import { createClientPublishes } from './publishes.js'
import { checkOptions, checkPosition, positionOf, Room, toMessage } from './room.js'

/**
 * @typedef {import('./room.js').Position} Position
 */

/**
 * @typedef {object} HistoryOptions
 * @property {Position} [before] the newest messages before this one; those at the end if neither is given
 * @property {Position} [after] the oldest messages after this one
 * @property {number} [limit] 50 unless given, 500 at most
 * @property {AbortSignal} [signal]
 */

/**
 * A part of a room's history, ascending. `more`: there is more in the direction asked. `truncated`: `after` reaches
 * further back than the history. `oldest` and `newest` are the room's.
 *
 * @template [T=any]
 * @typedef {{ messages: import('./room.js').Message<T>[], more: boolean, truncated: boolean, oldest: Position,
 *   newest: Position }} History
 */

/** @param {import('../client.js').PartDeps & { values: import('../values/values.js').Values, keepForbidden?: boolean }} deps */
export function createClientRooms(deps) {
  const { environment, send, nextId, calls, values, keepForbidden } = deps
  /** @type {Map<string, Room>} */
  const rooms = new Map()
  const subscriber = createSubscriber({
    ...deps,
    entryOf: (key, id) => rooms.get(key)?.ask(id) ?? key,
    fail,
    forget,
  })
  const publishes = createClientPublishes({
    ...deps,
    onChange: key => rooms.get(key)?.become({ pending: publishes.pending(key) }),
  })
  let isOpen = false
  /** Set once nothing is asked of the gateway any more. @type {KeycastError | undefined} */
  let closed

  /** @param {string} key @param {{ code: any, message: string, type?: string, retryAfterMs?: number, subscribed?: boolean }} error */
  function fail(key, { subscribed = false, ...rest }) {
    const room = rooms.get(key)
    if (!room) return
    const error = new KeycastError({ ...rest, key, subscribed })
    room.refusals = room.end === 'forbidden' ? room.refusals + 1 : 0
    room.end = endOf(error)
    if (room.end) subscriber.ended(key, rest.type)
    if (room.end === 'forbidden') {
      room.refusal.set(() => room.end === 'forbidden' && retry(room), backoffMs(environment.random, room.refusals))
      if (!keepForbidden) room.members.forget()
    }
    room.become({ live: subscribed && room.state.live, error })
  }

  /** @param {string} key a room that may not be wanted any more */
  function forget(key) {
    const room = rooms.get(key)
    if (!room || subscriber.isSubscribed(key)) return
    // The next handle would take a room that is still live for one that is subscribed to.
    room.stop()
    // A room that comes next would not know the claim of a join under way.
    if (room.handles > 0 || room.membership.isBusy()) return
    room.refusal.clear()
    rooms.delete(key)
  }

  /** @param {string} key */
  function create(key) {
    const room = new Room(key, { ...deps, want: subscriber.want, isOpen: () => isOpen, check, forget })
    rooms.set(key, room)
    // A message published by a closed handle may still be under way.
    room.become({ pending: publishes.pending(key) })
    return room
  }

  /** Throws if nothing of a key can be asked. @param {string} key */
  function check(key) {
    const refused = closed ?? badKey(key)
    if (refused) throw refused
  }

  /** @param {string} key that the gateway was asked for as what it is not */
  const unsubscribe = key => send({ type: 'unsubscribe', id: nextId(), keys: [key] })

  /** @param {number | undefined} id of the subscribe @param {any[]} begun keys; those of rooms have an epoch */
  function begin(id, begun) {
    for (const each of begun) {
      if (each.epoch !== undefined) takeFromValues(each.key, id)
      const room = rooms.get(each.key)
      if (!room || !subscriber.isSubscribed(each.key)) continue
      const { live } = room.state
      if (id === undefined) {
        // The gateway began the stream anew by itself: a live stream continues if it had stopped at that position.
        const isWhole = live && each.recovered
        // First, for a listener that hears of the change may close the handle.
        if (!isWhole) room.want()
        // The error that the room rested for is over. Else it waits: messages before the answer may be of another epoch.
        room.become(isWhole ? { error: undefined } : { live: false })
      } else if (!live && room.askId === id) {
        if (each.epoch !== undefined) room.begin(each)
        else {
          fail(each.key, { code: 'not_a_room', message: 'a value' })
          if (!values.isSubscribed(each.key)) unsubscribe(each.key)
        }
      }
    }
  }

  /**
   * The gateway begins a room, perhaps because of a subscribe of a value: to the gateway a session has one stream per
   * key.
   *
   * @param {string} key of a room
   * @param {number} [id] of the subscribe that was answered
   */
  function takeFromValues(key, id) {
    const wasValue = values.failAsRoom(key)
    const room = rooms.get(key)
    if (room && subscriber.isSubscribed(key)) {
      // The value was asked for later than the room: the stream does not continue as this client's readers need it.
      if (room.askId && /** @type {number} */ (id) > room.askId) {
        subscriber.ended(key)
        room.want()
      }
      // Sent at once: it must not undo a later subscribe of the room.
    } else if (wasValue) unsubscribe(key)
  }

  /** Asks again for a room that was refused or has ended, and for the membership. @param {Room} room */
  function retry(room) {
    if (closed || badKey(room.key)) return
    if (room.ended) {
      room.end = undefined
      room.become({ error: undefined })
    }
    // A listener may have closed the client.
    if (!closed) room.want()
    if (room.membership.isWaiting()) room.membership.renew()
  }

  return {
    /**
     * @param {string} key
     * @param {import('./room.js').RoomOptions} [options]
     * @throws {TypeError} if it cannot begin there: a gateway would refuse everything else in the same subscribe
     */
    room(key, { after, last, presence = false, follow = true, bufferMessages } = {}) {
      checkOptions({ after, last, bufferMessages })
      const room = rooms.get(key) ?? create(key)
      room.handles += 1
      /** @type {import('./room.js').Reader} */
      const reader = { position: after ? positionOf(after.epoch, after.seq) : undefined, last, presence, take() {} }
      const refused = closed ?? badKey(key)
      if (refused) {
        // It may be asked for when the client connects again.
        if (follow) room.readers.add(reader)
        room.end = 'ended'
        room.become({ error: refused })
      } else if (follow) {
        if (room.ended) retry(room)
        subscriber.keep(key)
        room.add(reader)
      }

      return createRoomHandle({
        room,
        reader,
        follow,
        bufferMessages,
        retry: () => retry(room),
        onClose() {
          room.handles -= 1
          room.readers.delete(reader)
          if (room.handles === 0 && room.membership.stands()) room.membership.leave().catch(() => {})
          if (room.readers.size === 0) subscriber.drop(key)
        },
        async publish(data, options) {
          check(key)
          return publishes.publish(key, data, options)
        },
        async history({ before, after, limit, signal } = {}) {
          checkPosition('before', before)
          checkPosition('after', after)
          check(key)
          const epoch = (before ?? after)?.epoch
          return calls.ask(
            () => ({ type: 'history', key, epoch, before: before?.seq, after: after?.seq, limit }),
            message => ({
              messages: message.messages.map((/** @type {any} */ each) => {
                // A list would show one of its own as pending, too.
                publishes.saw({ key, ...each }, message.epoch)
                return toMessage(message.epoch, each)
              }),
              more: message.more,
              truncated: message.truncated ?? false,
              oldest: { epoch: message.epoch, seq: message.oldest },
              newest: { epoch: message.epoch, seq: message.newest },
            }),
            signal,
          )
        },
        join: room.membership.join,
        leave: room.membership.leave,
      })
    },

    /** @param {import('../connection/connection.js').Limits} limits */
    opened(limits) {
      isOpen = true
      const wanted = [...rooms.values()].filter(({ ended, readers }) => !ended && readers.size > 0)
      subscriber.opened(limits, wanted)
      for (const room of rooms.values()) {
        room.become({})
        room.membership.renew()
      }
      publishes.opened(limits)
    },

    /**
     * A value of a key was asked for. If its messages arrive as those of a room, the gateway is not asked.
     *
     * @param {string} key
     */
    wantedAsValue(key) {
      const room = rooms.get(key)
      if (room?.state.live && room.readers.size > 0) values.failAsRoom(key)
    },

    lost() {
      isOpen = false
      subscriber.lost()
      publishes.lost()
      for (const room of rooms.values()) {
        room.membership.lost()
        room.refusal.clear()
        room.stop()
      }
    },

    /** @param {any} message @returns {boolean} whether it was about a room */
    receive(message) {
      if (publishes.answered(message)) return true
      const { type, id, key, retryAfterMs, subscribed } = message
      if (type === 'subscribed') begin(id, message.keys)
      // Values are told which keys are rooms: one of them may be wanted as a value.
      if (subscriber.answered(message)) return type !== 'subscribed'
      const room = rooms.get(key)
      if (!room) return false
      const isSubscribed = subscriber.isSubscribed(key)
      // An error of the subscription says that it ends, or when it is tried again.
      const isOfJoin = message.code === 'name_taken' || subscribed || !isSubscribed
      if (type === 'error' && id === undefined && retryAfterMs === undefined && room.membership.stands() && isOfJoin) {
        room.membership.refuse(new KeycastError(message))
        return true
      }
      if (!isSubscribed) return false
      if (type === 'error') {
        // Any other error with an id answers a publish that was given up.
        if (id === undefined || id === room.askId) fail(key, message)
      } else if (type === 'gap') room.takeGap(message)
      else if (type === 'members' || type === 'presence') room.members.take(message)
      else if (type === 'message') {
        if (room.state.live && room.position) publishes.saw(message, room.position.epoch)
        room.take(message)
      }
      return true
    },

    /** Nothing more is asked of the gateway. @param {KeycastError} error */
    end(error) {
      closed = error
      publishes.end(error)
      for (const room of rooms.values()) {
        room.end = 'ended'
        room.become({ error, live: false })
      }
    },

    /** A listener that hears of it may close the client, which ends all rooms again. */
    revive() {
      closed = undefined
      for (const room of rooms.values()) {
        if (!closed && (room.end || room.membership.isWaiting())) retry(room)
      }
    },
  }
}
