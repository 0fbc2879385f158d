// Ties sessions to rooms. A room is watched with its first session here, and forgotten with its last.
import { excerpt, namespaceOf } from '@keycast/protocol'
import { createProblem } from '../keys/problem.ts'
import { takeAnswers } from './held-answers.ts'
import { createRoom } from './room.ts'

/**
 * @typedef {import('../keys/problem.ts').Problem} Problem
 * @typedef {import('../sessions/session.ts').Session} Session
 * @typedef {import('./room.ts').Room} Room
 * @typedef {import('./room.ts').RoomSubscription} RoomSubscription
 * @typedef {ReturnType<typeof createFollowers>} Followers
 */

/**
 * @param {object} deps
 * @param {import('@keycast/service').JournalNamespaces} deps.namespaces
 * @param {Pick<import('@keycast/backbone').RoomsBackbone, 'watch' | 'unwatch'>} deps.backbone
 * @param {Pick<import('./tails.ts').Tails, 'forget'>} deps.tails
 * @param {Pick<import('../delivery/outbox.ts').Outbox, 'forget' | 'send'>} deps.outbox
 * @param {Pick<import('../presence/watching.ts').Watching, 'end'>} deps.watching
 * @param {import('../keys/places.ts').Places} deps.places
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createFollowers({ namespaces, backbone, tails, outbox, watching, places, now }) {
  /** @type {Map<string, Room>} */
  const rooms = new Map()

  /** @param {string} key */
  const namespaceFor = key => namespaces.get(namespaceOf(key))

  /**
   * Has a session follow a room. One that does already stays where it is.
   *
   * @param {Session} session
   * @param {string} key the session's rights cover it: admissions.ts checked, and ends waits when the rights change
   * @returns {{ problem: Problem, subscription?: undefined } | { problem?: undefined, subscription: RoomSubscription }}
   */
  function add(session, key) {
    const subscribed = session.subscriptions.get(key)
    if (subscribed) return { subscription: /** @type {RoomSubscription} */ (subscribed) }
    const code = places.take(session)
    if (code) return { problem: createProblem(code, now()) }

    const room = rooms.get(key) ?? open(key)
    /** @type {RoomSubscription} */
    const subscription = {
      session,
      room,
      index: room.subscriptions.length,
      due: 0,
      cursor: 0,
      placing: undefined,
      isBehind: false,
      members: undefined,
      gap: undefined,
      answers: undefined,
    }
    room.subscriptions.push(subscription)
    // Uses the room's own string: the string of this message would be in memory once per session.
    session.subscriptions.set(room.key, subscription)
    return { subscription }
  }

  /** @param {string} key passed the gate */
  function open(key) {
    const namespace = namespaceFor(key)
    if (!namespace) throw new Error(`opened ${excerpt(key)}, which nobody checked`)
    const room = createRoom(key, namespace)
    rooms.set(key, room)
    backbone.watch(key)
    return room
  }

  /**
   * Ends a subscription: nothing of the room is written after.
   *
   * @param {RoomSubscription} subscription
   */
  function remove(subscription) {
    const { session, room, index } = subscription
    session.subscriptions.delete(room.key)
    places.leave(session)
    outbox.forget(subscription)
    watching.end(subscription)
    subscription.placing = undefined
    subscription.index = -1
    const last = /** @type {RoomSubscription} */ (room.subscriptions.pop())
    if (last !== subscription) {
      room.subscriptions[index] = last
      last.index = index
    }
    if (room.subscriptions.length === 0) close(room)
    // These publishers waited for messages that will not come.
    for (const answer of takeAnswers(subscription)) outbox.send(session, answer)
  }

  /** @param {Room} room */
  function close(room) {
    rooms.delete(room.key)
    backbone.unwatch(room.key)
    tails.forget(room)
  }

  return {
    add,
    remove,
    /** Whether the key is one of a room. The key may be anything that a client sent. @param {string} key */
    isRoom: key => namespaces.names.length > 0 && namespaceFor(key) !== undefined,
    /** @param {string} key */
    get: key => rooms.get(key),
    all: () => rooms.values(),
    size: () => rooms.size,
  }
}
