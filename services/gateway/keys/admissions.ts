// Subscriptions to keys, of values or of rooms, that the gate holds. A subscription begins when the gate admits the session,
// pauses while its backend cannot be asked, and ends when the session is refused.
import {
  type ErrorCode,
  errorMessage,
  isProblem,
  type Problem,
  type RequestId,
  type RoomStart,
} from '@keycast/protocol'
import type { Outbox } from '../delivery/outbox.ts'
import type { Admitted, Gate } from '../gate/gate.ts'
import type { Announcement } from '../rooms/announcement.ts'
import type { Rooms } from '../rooms/rooms.ts'
import { isSubscribed, type Session } from '../sessions/session.ts'
import type { Endings } from './endings.ts'
import type { Subscriptions } from './subscriptions.ts'

export type Admissions = ReturnType<typeof createAdmissions>

/**
 * How a client asked for a key: with the version it holds of a value, or where a room is to begin, which is announced
 * with the others of its request. `announcement`: until it is clear that this one takes longer.
 */
type Asked =
  | { version: string | undefined; room?: undefined }
  | { room: { start: RoomStart | undefined; id: RequestId | undefined; announcement: Announcement | undefined } }

/** A key that a session asked to be subscribed to. `toldCode`: of the failure it was told. */
export interface Awaited {
  asked: Asked
  toldCode: ErrorCode | undefined
}

interface Deps {
  gate: Pick<Gate, 'hold' | 'release'>
  subscriptions: Pick<Subscriptions, 'add'>
  rooms: Pick<Rooms, 'announce' | 'add' | 'finish' | 'positionOf' | 'hold'>
  endings: Pick<Endings, 'remove'>
  outbox: Pick<Outbox, 'send'>
}

export function createAdmissions({ gate, subscriptions, rooms, endings, outbox }: Deps) {
  let awaiting = 0

  /**
   * Subscribes a session to a key, now or once the gate admits it. One that is subscribed is sent the key's state again.
   *
   * @param key as a client sent it
   * @returns why it was not subscribed
   */
  function hold(session: Session, key: string, asked: Asked): Problem | undefined {
    const held = gate.hold(session, 'subscribe', key)
    if (held !== 'waits') return isProblem(held) ? held : add(session, held, asked)
    wait(session, key, asked)
    return undefined
  }

  /** @param admitted to a key that the session holds */
  function add(session: Session, admitted: Admitted, asked: Asked) {
    if (asked.room) return addRoom(session, admitted.key, asked.room)
    const full = subscriptions.add(session, admitted, asked.version)
    if (full) gate.release(session, 'subscribe', admitted.key)
    return full
  }

  function addRoom(session: Session, key: string, { start, id, announcement }: NonNullable<Asked['room']>) {
    // Where nobody waits for this answer any more, it is sent on its own.
    const own = announcement ?? rooms.announce(session, id)
    rooms.add(session, key, start, own)
    if (own !== announcement) rooms.finish(own)
    return undefined
  }

  function wait(session: Session, key: string, asked: Asked) {
    // The rooms of a request are announced together: the others wait for this one.
    if (asked.room?.announcement) rooms.hold(asked.room.announcement)
    const before = session.awaited?.get(key)
    if (before) finish(before)
    else awaiting++
    session.awaited ??= new Map()
    session.awaited.set(key, { asked, toldCode: undefined })
  }

  /** A request's other rooms no longer wait for this one. */
  function finish({ asked: { room } }: Awaited) {
    if (!room?.announcement) return
    rooms.finish(room.announcement)
    room.announcement = undefined
  }

  function stopAwaiting(session: Session, key: string): Awaited | undefined {
    const awaited = session.awaited?.get(key)
    if (awaited && session.awaited?.delete(key)) awaiting--
    return awaited
  }

  /** Ends a session's subscription to a key, or its wait for one: nothing of the key is written after. */
  function unsubscribe(session: Session, key: string) {
    if (!isSubscribed(session, key)) return
    const awaited = stopAwaiting(session, key)
    if (awaited) finish(awaited)
    endings.remove(session, key)
    gate.release(session, 'subscribe', key)
  }

  /** Has a subscription wait, if it does not: it is to go on where it stands. */
  function pause(session: Session, key: string) {
    const subscription = session.subscriptions.get(key)
    if (!subscription) return
    let asked: Asked = { version: undefined }
    if ('room' in subscription) {
      // No message is lost: the room continues where it stopped. An unanswered request still gets its answer.
      const { id } = subscription.placing?.announcement ?? {}
      asked = { room: { start: rooms.positionOf(subscription), id, announcement: undefined } }
    }
    endings.remove(session, key)
    wait(session, key, asked)
  }

  /** The session is admitted. */
  function begin(session: Session, admitted: Admitted) {
    const { key } = admitted
    const awaited = stopAwaiting(session, key)
    if (!awaited) return
    const { announcement } = awaited.asked.room ?? {}
    const full = add(session, admitted, awaited.asked)
    finish(awaited)
    if (full) tell(session, key, full, false, announcement?.id)
  }

  /** The session waits from now on, and is told why, once. */
  function suspend(session: Session, key: string, problem: Problem) {
    pause(session, key)
    const awaited = session.awaited?.get(key)
    if (!awaited || awaited.toldCode === problem.code) return
    awaited.toldCode = problem.code
    tell(session, key, problem, true, awaited.asked.room?.announcement?.id)
    finish(awaited)
  }

  function end(session: Session, key: string, problem: Problem) {
    const id = session.awaited?.get(key)?.asked.room?.announcement?.id
    unsubscribe(session, key)
    tell(session, key, problem, false, id)
  }

  function tell(session: Session, key: string, problem: Problem, subscribed: boolean, id?: RequestId) {
    outbox.send(session, errorMessage(problem, { id, key, subscribed }))
  }

  const keysOf = (session: Session): string[] => [...session.subscriptions.keys(), ...(session.awaited?.keys() ?? [])]

  return {
    /** @param version the client holds */
    subscribe: (session: Session, key: string, version: string | undefined) => hold(session, key, { version }),

    /** The same for a room. @param announcement of the whole request */
    subscribeRoom: (session: Session, key: string, start: RoomStart | undefined, announcement: Announcement) =>
      hold(session, key, { room: { start, id: announcement.id, announcement } }),

    unsubscribe,
    keysOf,
    pause,

    stateOf(session: Session, key: string) {
      if (session.subscriptions.has(key)) return 'stands'
      return session.awaited?.has(key) ? 'waits' : undefined
    },

    decided(session: Session, key: string, outcome: Admitted | Problem) {
      if (!isProblem(outcome)) begin(session, outcome)
      else if (outcome.retryAfterMs === undefined) end(session, key, outcome)
      else suspend(session, key, outcome)
    },

    /** @param session that ended */
    drop(session: Session) {
      for (const key of keysOf(session)) unsubscribe(session, key)
    },

    has: isSubscribed,

    stats: () => ({ awaiting }),
  }
}
