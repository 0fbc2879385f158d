// Ties sessions to rooms. A room is watched with its first session here, and forgotten with its last.
import type { RoomsBackbone } from '@keycast/backbone'
import { excerpt, namespaceOf } from '@keycast/protocol'
import type { JournalNamespaces } from '@keycast/service'
import type { Outbox } from '../delivery/outbox.ts'
import type { Watching } from '../presence/watching.ts'
import type { Session } from '../sessions/session.ts'
import { takeAnswers } from './held-answers.ts'
import { createRoom, type Room, type RoomSubscription } from './room.ts'
import type { Tails } from './tails.ts'

export type Followers = ReturnType<typeof createFollowers>

interface Deps {
  namespaces: JournalNamespaces
  backbone: Pick<RoomsBackbone, 'watch' | 'unwatch'>
  tails: Pick<Tails, 'forget'>
  outbox: Pick<Outbox, 'forget' | 'send'>
  watching: Pick<Watching, 'end'>
}

export function createFollowers({ namespaces, backbone, tails, outbox, watching }: Deps) {
  const rooms = new Map<string, Room>()

  const namespaceFor = (key: string) => namespaces.get(namespaceOf(key))

  /**
   * Has a session follow a room. One that does already stays where it is.
   *
   * @param key that the session holds
   */
  function add(session: Session, key: string): RoomSubscription {
    const subscribed = session.subscriptions.get(key)
    if (subscribed) return subscribed as RoomSubscription
    const room = rooms.get(key) ?? open(key)
    const subscription: RoomSubscription = {
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
    return subscription
  }

  /** @param key passed the gate */
  function open(key: string) {
    const namespace = namespaceFor(key)
    if (!namespace) throw new Error(`opened ${excerpt(key)}, which nobody checked`)
    const room = createRoom(key, namespace)
    rooms.set(key, room)
    backbone.watch(key)
    return room
  }

  /** Ends a subscription: nothing of the room is written after. */
  function remove(subscription: RoomSubscription) {
    const { session, room, index } = subscription
    session.subscriptions.delete(room.key)
    outbox.forget(subscription)
    watching.end(subscription)
    subscription.placing = undefined
    subscription.index = -1
    const last = room.subscriptions.pop() as RoomSubscription
    if (last !== subscription) {
      room.subscriptions[index] = last
      last.index = index
    }
    if (room.subscriptions.length === 0) close(room)
    // These publishers waited for messages that will not come.
    for (const answer of takeAnswers(subscription)) outbox.send(session, answer)
  }

  function close(room: Room) {
    rooms.delete(room.key)
    backbone.unwatch(room.key)
    tails.forget(room)
  }

  return {
    add,
    remove,
    /** Whether the key is one of a room. The key may be anything that a client sent. */
    isRoom: (key: string) => namespaces.names.length > 0 && namespaceFor(key) !== undefined,
    get: (key: string) => rooms.get(key),
    all: () => rooms.values(),
    size: () => rooms.size,
  }
}
