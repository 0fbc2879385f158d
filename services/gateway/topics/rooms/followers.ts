// Ties sessions to rooms. A room is watched with its first session here, and forgotten with its last.
import type { RoomsBackbone } from '@keycast/backbone'
import type { ControlMessage } from '@keycast/protocol'
import type { Session } from '../../sessions/session.ts'
import { attach, detach, type Subscription } from '../topics.ts'
import { takeAnswers } from './held-answers.ts'
import type { Room, RoomSubscription } from './room.ts'
import type { Place, RoomPlaces } from './room-places.ts'

interface Deps {
  /** By key. */
  rooms: Map<string, Room>
  backbone: Pick<RoomsBackbone, 'watch' | 'unwatch'>
  tails: { forget(room: Room): void }
  outbox: { forget(subscription: Subscription): void; send(session: Session, message: ControlMessage): void }
  watching: { end(subscription: RoomSubscription): void }
  places: Pick<RoomPlaces, 'take' | 'leave' | 'giveBack'>
}

export function createFollowers({ rooms, backbone, tails, outbox, watching, places }: Deps) {
  function add(session: Session, room: Room): RoomSubscription {
    const subscription: RoomSubscription = {
      session,
      topic: room,
      index: 0,
      due: 0,
      cursor: 0,
      placing: undefined,
      reading: undefined,
      isBehind: false,
      members: undefined,
      gap: undefined,
      answers: undefined,
    }
    attach(subscription)
    if (room.subscriptions.length === 1) {
      rooms.set(room.key, room)
      room.place = places.take(session, 1)
      backbone.watch(room.key)
    }
    return subscription
  }

  /** Ends a subscription: nothing of the room is written after. */
  function remove(subscription: RoomSubscription) {
    const { session, topic: room } = subscription
    outbox.forget(subscription)
    watching.end(subscription)
    subscription.placing = undefined
    detach(subscription)
    if (room.subscriptions.length === 0) {
      rooms.delete(room.key)
      backbone.unwatch(room.key)
      tails.forget(room)
      places.giveBack(room.place as Place)
    } else places.leave(room.place as Place, session, room.subscriptions[0].session)
    // These publishers waited for messages that will not come.
    for (const answer of takeAnswers(subscription)) outbox.send(session, answer)
  }

  return { add, remove }
}
