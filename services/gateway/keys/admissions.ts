// Subscriptions to keys, of values or of rooms, whose backend decides who reads them. A subscription begins when the
// backend admits its viewer, pauses while the backend cannot be asked, and ends when the viewer is refused.
import type { ErrorCode, RequestId, RoomStart } from '@keycast/protocol'
import { type Decisions, SUBSCRIBED } from '../access/backend/decisions.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Gate } from '../gate/gate.ts'
import type { Announcement } from '../rooms/announcement.ts'
import type { Rooms } from '../rooms/rooms.ts'
import { isSubscribed, type Session } from '../sessions/session.ts'
import type { Endings } from './endings.ts'
import type { Places } from './places.ts'
import { createProblem, problemMessage, type Refusal } from './problem.ts'
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
  gate: Pick<Gate, 'check' | 'covers' | 'isViewers'>
  decisions: Pick<Decisions, 'applies' | 'register' | 'unregister'>
  subscriptions: Pick<Subscriptions, 'add'>
  rooms: Pick<Rooms, 'announce' | 'add' | 'finish' | 'positionOf' | 'hold'>
  endings: Pick<Endings, 'remove' | 'drop'>
  places: Pick<Places, 'take' | 'leave'>
  outbox: Pick<Outbox, 'send'>
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createAdmissions({ gate, decisions, subscriptions, rooms, endings, places, outbox, now }: Deps) {
  let awaiting = 0

  /**
   * Subscribes a session to a key, now or once its viewer is admitted. One that is subscribed is sent the key's state
   * again.
   *
   * @param key as a client sent it
   * @param version the client holds
   * @returns why it was not subscribed
   */
  function subscribe(session: Session, key: string, version: string | undefined): Refusal | undefined {
    // Rights come first: the backend is not asked about keys that the viewer's rights do not cover.
    return gate.check(session.rights, 'subscribe', key) ?? admit(session, key, { version })
  }

  /**
   * The same for a room. A subscription that exists already has its stream begun anew.
   *
   * @param key as a client sent it
   * @param announcement of the whole request
   * @returns why it was not subscribed
   */
  function subscribeRoom(
    session: Session,
    key: string,
    start: RoomStart | undefined,
    announcement: Announcement,
  ): Refusal | undefined {
    return (
      gate.check(session.rights, 'subscribe', key) ??
      admit(session, key, { room: { start, id: announcement.id, announcement } })
    )
  }

  /** @param key that its rights cover */
  function admit(session: Session, key: string, asked: Asked) {
    if (!decisions.applies(key) || session.subscriptions.has(key)) return add(session, key, asked)
    const awaited = session.awaited?.get(key)
    if (awaited) {
      release(awaited.asked)
      hold(asked)
      Object.assign(awaited, { asked, toldCode: undefined })
      return undefined
    }
    // A subscription counts against the limits from now on, while nobody knows yet whether it is admitted.
    const code = places.take(session)
    if (code) return createProblem(code, now())
    const { isAdmitted, problem } = decisions.register(session, key, SUBSCRIBED)
    if (!problem && !isAdmitted) {
      wait(session, key, asked)
      return undefined
    }
    places.leave(session)
    if (problem) return problem
    const full = add(session, key, asked)
    if (full) decisions.unregister(session, key, SUBSCRIBED)
    return full
  }

  /** @param key of an admitted viewer */
  function add(session: Session, key: string, asked: Asked) {
    if (!asked.room) return subscriptions.add(session, key, asked.version)
    const { start, id, announcement } = asked.room
    if (announcement) return rooms.add(session, key, start, announcement)
    // Nobody waits for this answer: it is sent on its own.
    const own = rooms.announce(session, id)
    const problem = rooms.add(session, key, start, own)
    rooms.finish(own)
    return problem
  }

  function wait(session: Session, key: string, asked: Asked) {
    hold(asked)
    session.awaited ??= new Map()
    session.awaited.set(key, { asked, toldCode: undefined })
    awaiting++
  }

  /** The rooms of a request are announced together: the others wait for this one. */
  function hold({ room }: Asked) {
    if (room?.announcement) rooms.hold(room.announcement)
  }

  /** A request's other rooms no longer wait for this one. */
  function release({ room }: Asked) {
    if (!room?.announcement) return
    rooms.finish(room.announcement)
    room.announcement = undefined
  }

  function stopAwaiting(session: Session, key: string): Awaited | undefined {
    const awaited = session.awaited?.get(key)
    if (!awaited) return undefined
    session.awaited?.delete(key)
    awaiting--
    places.leave(session)
    return awaited
  }

  /** Ends a session's subscription to a key, or its wait for one: nothing of the key is written after. */
  function unsubscribe(session: Session, key: string) {
    const awaited = stopAwaiting(session, key)
    if (awaited) release(awaited.asked)
    endings.remove(session, key)
    decisions.unregister(session, key, SUBSCRIBED)
  }

  /**
   * Applies the backend's decision to one session of the viewer.
   *
   * @param problem the reason why its viewer may not read the key now
   */
  function decided(session: Session, key: string, problem: Refusal | undefined) {
    if (!problem) return begin(session, key)
    if (problem.retryAfterMs === undefined) return end(session, key, problem)
    if (session.subscriptions.has(key)) {
      const asked = askedAgain(session, key)
      endings.remove(session, key)
      // The wait keeps the place that `endings.remove` has just given back.
      places.take(session)
      wait(session, key, asked)
    }
    const awaited = session.awaited?.get(key)
    if (!awaited || awaited.toldCode === problem.code) return
    awaited.toldCode = problem.code
    const { room } = awaited.asked
    tell(session, key, problem, true, room?.announcement?.id)
    release(awaited.asked)
  }

  /** The viewer is admitted. */
  function begin(session: Session, key: string) {
    const awaited = stopAwaiting(session, key)
    if (!awaited) return
    const { announcement } = awaited.asked.room ?? {}
    const full = add(session, key, awaited.asked)
    release(awaited.asked)
    if (!full) return
    unsubscribe(session, key)
    tell(session, key, full, false, announcement?.id)
  }

  /** The request with which a paused subscription starts again. */
  function askedAgain(session: Session, key: string): Asked {
    const subscription = session.subscriptions.get(key)
    if (!subscription || !('room' in subscription)) return { version: undefined }
    // No message is lost: the room continues where it stopped. An unanswered request still gets its answer.
    const { id } = subscription.placing?.announcement ?? {}
    return { room: { start: rooms.positionOf(subscription), id, announcement: undefined } }
  }

  function end(session: Session, key: string, problem: Refusal) {
    // A room that the session only joined does not end here: joins.ts ends it.
    if (!isSubscribed(session, key)) return
    const id = session.awaited?.get(key)?.asked.room?.announcement?.id
    unsubscribe(session, key)
    tell(session, key, problem, false, id)
  }

  function tell(session: Session, key: string, problem: Refusal, subscribed: boolean, id?: RequestId) {
    outbox.send(session, problemMessage(problem, now(), { id, key, subscribed }))
  }

  const keysOf = (session: Session): string[] => [...session.subscriptions.keys(), ...(session.awaited?.keys() ?? [])]

  return {
    subscribe,
    subscribeRoom,
    unsubscribe,
    decided,

    /** Ends the subscriptions that the session's rights no longer cover. */
    endUncovered(session: Session) {
      for (const key of keysOf(session)) {
        const problem = gate.covers(session.rights, 'subscribe', key)
        if (problem) end(session, key, problem)
      }
    },

    /**
     * The session has another viewer. Decisions for the viewer before say nothing, and that viewer's own values are not
     * this one's.
     *
     * @param change sets the new viewer
     */
    changeViewer(session: Session, change: () => void) {
      const keys = keysOf(session).filter(gate.isViewers)
      const asked = keys.map(key => session.awaited?.get(key)?.asked ?? askedAgain(session, key))
      for (const key of keys) unsubscribe(session, key)
      change()
      for (const [index, key] of keys.entries()) {
        const { room } = asked[index]
        const again = room ? { room } : { version: undefined }
        const problem = gate.check(session.rights, 'subscribe', key) ?? admit(session, key, again)
        if (problem) tell(session, key, problem, false)
      }
    },

    /** @param session that ended */
    drop(session: Session) {
      if (session.viewer) for (const key of keysOf(session)) if (decisions.applies(key)) unsubscribe(session, key)
      endings.drop(session)
    },

    has: isSubscribed,

    stats: () => ({ awaiting }),
  }
}
