// The `subscribed` of the rooms that one request named: sent once it is known of each where its stream begins, or that this
// takes a while.
import type { RequestId, RoomSubscribed } from '@keycast/protocol'
import type { Session } from '../sessions/session.ts'
import type { RoomSubscription } from './room.ts'

export interface Announcement {
  session: Session
  /** Of the request. */
  id: RequestId | undefined
  /** Rooms of which nothing is known yet; one more until the whole request was read. */
  unknown: number
  placed: RoomSubscription[]
}

export function createAnnouncement(session: Session, id: Announcement['id'], unknown = 1): Announcement {
  return { session, id, unknown, placed: [] }
}

/**
 * The entry of a room in `subscribed`: every message after its cursor follows.
 *
 * @param subscription that is placed
 */
export function subscribedTo({ room, cursor, placing }: RoomSubscription): RoomSubscribed {
  const { key, epoch = '', reached, oldest } = room
  // The client may have received some of these messages through another gateway already.
  const seq = Math.max(reached, cursor)
  return { key, epoch, seq, oldest, recovered: placing?.isRecovered ?? false, count: seq - cursor }
}
