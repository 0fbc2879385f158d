// Ends subscriptions, to values or to rooms: a session holds both in one map.
import type { Rooms } from '../rooms/rooms.ts'
import type { AnySubscription, Session } from '../sessions/session.ts'
import type { Subscriptions } from './subscriptions.ts'

export type Endings = ReturnType<typeof createEndings>

interface Deps {
  subscriptions: Pick<Subscriptions, 'end'>
  rooms: Pick<Rooms, 'end'>
}

export function createEndings({ subscriptions, rooms }: Deps) {
  function end(subscription: AnySubscription) {
    if ('room' in subscription) rooms.end(subscription)
    else subscriptions.end(subscription)
  }

  return {
    /** Ends a session's subscription to a key, if it has one: nothing of the key is written after. */
    remove(session: Session, key: string) {
      const subscription = session.subscriptions.get(key)
      if (subscription) end(subscription)
    },
  }
}
