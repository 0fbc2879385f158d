// Subscriptions to keys, of values or of rooms, whose backend decides who reads them. A subscription begins when the
// backend admits its viewer, pauses while the backend cannot be asked, and ends when the viewer is refused.
import { SUBSCRIBED } from '../access/backend/decisions.ts'
import { isSubscribed } from '../sessions/session.ts'
import { createProblem, problemMessage } from './problem.ts'

/**
 * @typedef {import('../sessions/session.ts').Session} Session
 * @typedef {import('./problem.ts').Refusal} Refusal
 * @typedef {ReturnType<typeof createAdmissions>} Admissions
 *
 * How a client asked for a key: with the version it holds of a value, or where a room is to begin, which is announced with the
 * others of its request.
 * @typedef {{ version: string | undefined, room?: undefined } | { room: { start: import('../rooms/room.ts').RoomStart | undefined,
 *   id: import('@keycast/protocol').RequestId | undefined,
 *   announcement: import('../rooms/announcement.ts').Announcement | undefined } }} Asked `announcement`: until it is clear that
 *   this one takes longer
 *
 * A key that a session asked to be subscribed to. `toldCode`: of the failure it was told.
 * @typedef {{ asked: Asked, toldCode: import('@keycast/protocol').ErrorCode | undefined }} Awaited
 */

/**
 * @param {object} deps
 * @param {Pick<import('../gate/gate.ts').Gate, 'check' | 'covers' | 'isViewers'>} deps.gate
 * @param {Pick<import('../access/backend/decisions.ts').Decisions, 'applies' | 'register' | 'unregister'>} deps.decisions
 * @param {Pick<import('./subscriptions.ts').Subscriptions, 'add'>} deps.subscriptions
 * @param {Pick<import('../rooms/rooms.ts').Rooms, 'announce' | 'add' | 'finish' | 'positionOf' | 'hold'>} deps.rooms
 * @param {Pick<import('./endings.ts').Endings, 'remove' | 'drop'>} deps.endings
 * @param {Pick<import('./places.ts').Places, 'take' | 'leave'>} deps.places
 * @param {Pick<import('../delivery/outbox.ts').Outbox, 'send'>} deps.outbox
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createAdmissions({ gate, decisions, subscriptions, rooms, endings, places, outbox, now }) {
  let awaiting = 0

  /**
   * Subscribes a session to a key, now or once its viewer is admitted. One that is subscribed is sent the key's state
   * again.
   *
   * @param {Session} session
   * @param {string} key as a client sent it
   * @param {string | undefined} version the client holds
   * @returns {Refusal | undefined} why it was not subscribed
   */
  function subscribe(session, key, version) {
    // Rights come first: the backend is not asked about keys that the viewer's rights do not cover.
    return gate.check(session.rights, 'subscribe', key) ?? admit(session, key, { version })
  }

  /**
   * The same for a room. A subscription that exists already has its stream begun anew.
   *
   * @param {Session} session
   * @param {string} key as a client sent it
   * @param {import('../rooms/room.ts').RoomStart | undefined} start
   * @param {import('../rooms/announcement.ts').Announcement} announcement of the whole request
   * @returns {Refusal | undefined} why it was not subscribed
   */
  function subscribeRoom(session, key, start, announcement) {
    return (
      gate.check(session.rights, 'subscribe', key) ??
      admit(session, key, { room: { start, id: announcement.id, announcement } })
    )
  }

  /** @param {Session} session @param {string} key that its rights cover @param {Asked} asked */
  function admit(session, key, asked) {
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

  /** @param {Session} session @param {string} key of an admitted viewer @param {Asked} asked */
  function add(session, key, asked) {
    if (!asked.room) return subscriptions.add(session, key, asked.version)
    const { start, id, announcement } = asked.room
    if (announcement) return rooms.add(session, key, start, announcement)
    // Nobody waits for this answer: it is sent on its own.
    const own = rooms.announce(session, id)
    const problem = rooms.add(session, key, start, own)
    rooms.finish(own)
    return problem
  }

  /** @param {Session} session @param {string} key @param {Asked} asked */
  function wait(session, key, asked) {
    hold(asked)
    session.awaited ??= new Map()
    session.awaited.set(key, { asked, toldCode: undefined })
    awaiting++
  }

  /** The rooms of a request are announced together: the others wait for this one. @param {Asked} asked */
  function hold({ room }) {
    if (room?.announcement) rooms.hold(room.announcement)
  }

  /** A request's other rooms no longer wait for this one. @param {Asked} asked */
  function release({ room }) {
    if (!room?.announcement) return
    rooms.finish(room.announcement)
    room.announcement = undefined
  }

  /** @param {Session} session @param {string} key @returns {Awaited | undefined} */
  function stopAwaiting(session, key) {
    const awaited = session.awaited?.get(key)
    if (!awaited) return undefined
    session.awaited?.delete(key)
    awaiting--
    places.leave(session)
    return awaited
  }

  /**
   * Ends a session's subscription to a key, or its wait for one: nothing of the key is written after.
   *
   * @param {Session} session
   * @param {string} key
   */
  function unsubscribe(session, key) {
    const awaited = stopAwaiting(session, key)
    if (awaited) release(awaited.asked)
    endings.remove(session, key)
    decisions.unregister(session, key, SUBSCRIBED)
  }

  /**
   * Applies the backend's decision to one session of the viewer.
   *
   * @param {Session} session
   * @param {string} key
   * @param {Refusal | undefined} problem the reason why its viewer may not read the key now
   */
  function decided(session, key, problem) {
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

  /** The viewer is admitted. @param {Session} session @param {string} key */
  function begin(session, key) {
    const awaited = stopAwaiting(session, key)
    if (!awaited) return
    const { announcement } = awaited.asked.room ?? {}
    const full = add(session, key, awaited.asked)
    release(awaited.asked)
    if (!full) return
    unsubscribe(session, key)
    tell(session, key, full, false, announcement?.id)
  }

  /**
   * The request with which a paused subscription starts again.
   *
   * @param {Session} session @param {string} key @returns {Asked}
   */
  function askedAgain(session, key) {
    const subscription = session.subscriptions.get(key)
    if (!subscription || !('room' in subscription)) return { version: undefined }
    // No message is lost: the room continues where it stopped. An unanswered request still gets its answer.
    const { id } = subscription.placing?.announcement ?? {}
    return { room: { start: rooms.positionOf(subscription), id, announcement: undefined } }
  }

  /** @param {Session} session @param {string} key @param {Refusal} problem */
  function end(session, key, problem) {
    // A room that the session only joined does not end here: joins.ts ends it.
    if (!isSubscribed(session, key)) return
    const id = session.awaited?.get(key)?.asked.room?.announcement?.id
    unsubscribe(session, key)
    tell(session, key, problem, false, id)
  }

  /**
   * @param {Session} session @param {string} key @param {Refusal} problem @param {boolean} subscribed
   * @param {import('@keycast/protocol').RequestId} [id]
   */
  function tell(session, key, problem, subscribed, id) {
    outbox.send(session, problemMessage(problem, now(), { id, key, subscribed }))
  }

  /** @param {Session} session @returns {string[]} */
  const keysOf = session => [...session.subscriptions.keys(), ...(session.awaited?.keys() ?? [])]

  return {
    subscribe,
    subscribeRoom,
    unsubscribe,
    decided,

    /** Ends the subscriptions that the session's rights no longer cover. @param {Session} session */
    endUncovered(session) {
      for (const key of keysOf(session)) {
        const problem = gate.covers(session.rights, 'subscribe', key)
        if (problem) end(session, key, problem)
      }
    },

    /**
     * The session has another viewer. Decisions for the viewer before say nothing, and that viewer's own values are not
     * this one's.
     *
     * @param {Session} session
     * @param {() => void} change sets the new viewer
     */
    changeViewer(session, change) {
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

    /** @param {Session} session that ended */
    drop(session) {
      if (session.viewer) for (const key of keysOf(session)) if (decisions.applies(key)) unsubscribe(session, key)
      endings.drop(session)
    },

    has: isSubscribed,

    stats: () => ({ awaiting }),
  }
}
