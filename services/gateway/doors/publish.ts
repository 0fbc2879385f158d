// Publishes into rooms: the checks before the journal is asked, and the order of the answers to the publisher.
import type { AskedMessage, Published, RoomsBackbone } from '@keycast/backbone'
import {
  type ControlMessage,
  isProblem,
  namespaceOf,
  type Problem,
  type Publish,
  type Published as PublishedOf,
  type RequestId,
} from '@keycast/protocol'
import type { Containment, JournalNamespaces, Payer } from '@keycast/service'
import { type Counts, countOne } from '../counts.ts'
import type { CloseCode } from '../delivery/outbox.ts'
import type { Act, Admitted, Asker } from '../gate/gate.ts'
import type { Session } from '../sessions/session.ts'
import { holdAnswer } from '../topics/rooms/held-answers.ts'
import { type RoomSubscription, subscriptionTo } from '../topics/rooms/room.ts'
import { errorAbout } from '../topics/topics.ts'
import type { PublishRulings } from './publish-rulings.ts'

type Outcome = Published | Problem

/**
 * A publish of a session. Its outcome is said after those of the session's earlier ones to the room. `send`: it may be
 * published, once those before it are.
 */
interface Pending {
  id: RequestId | undefined
  bytes: number
  send: (() => void) | undefined
  outcome: Outcome | undefined
}

/**
 * A session's publishes into one room, in the order in which they came. `sent`: so many of them no longer wait. `isSending`:
 * others are being sent. `payer`: of all of them, also where the session has a user meanwhile. Payers take turns in the
 * journal: a publish of another one would overtake those before it.
 */
interface Lane {
  payer: Payer | undefined
  pending: Pending[]
  sent: number
  isSending: boolean
}

interface Publisher {
  bytes: number
  byRoom: Map<string, Lane>
}

/** The cost of a publish beside its data, or of its answer while that is held: key and ids, and records. */
const PUBLISH_BYTES = 512

/**
 * Of all sessions' publishes under way, with {@link PUBLISH_BYTES} for each: not quite the 50,000 that a link takes, so
 * that backends and revocations find a place there, too.
 */
const TOTAL_BYTES_MAX = 24 * 2 ** 20

/** A client repeats a publish that found no place among those under way after this time. */
const RETRY_MS = 100

interface Deps {
  namespaces: JournalNamespaces
  gate: {
    enter(asker: Asker, act: Act, key: string): Admitted | Problem | Promise<Admitted | Problem>
    recheck(admitted: Admitted): Problem | 'again' | undefined
    operator(of: 'value' | 'room', key: string): Problem | undefined
  }
  backbone: Pick<RoomsBackbone, 'publish'>
  ruleOn: PublishRulings
  outbox: {
    send(session: Session, message: ControlMessage, of?: 'publish'): void
    close(session: Session, code: CloseCode): void
  }
  containment: Pick<Containment, 'guard'>
  /** The outcome is answered within this time. */
  publishMs: number
  /** Of one session. */
  publishesPendingBytesMax: number
  counts: Pick<Counts, 'publishes' | 'publishSeconds'>
  now: () => number
}

export function createPublishes({
  namespaces,
  gate,
  backbone,
  ruleOn,
  outbox,
  containment,
  publishMs,
  publishesPendingBytesMax,
  counts,
  now,
}: Deps) {
  /** Those with publishes under way. */
  const publishers = new Map<Session, Publisher>()
  let totalBytes = 0
  const options = { deadlineMs: publishMs }
  /** The journal's answer brings the outcomes of many sessions: an error ends the one that it came with. */
  const ends = containment.guard('session', end, session => outbox.close(session, 'internalError'))

  /**
   * A client publishes. The answer follows, whatever it is.
   *
   * @returns a promise where some of the work is still to be done
   */
  function fromSession(session: Session, { id, key, messageId, data }: Publish): Promise<void> | void {
    const pending: Pending = { id, bytes: PUBLISH_BYTES + data.length, send: undefined, outcome: undefined }
    // Not in its turn: what waits for the turn of others is what is too much already.
    if (hasTooMany(session)) {
      return outbox.send(session, answerOf(session, key, id, refuse(tooMany)))
    }
    const entered = gate.enter(session, 'publish', key)
    if (!(entered instanceof Promise) && isProblem(entered)) return endAtOnce(session, key, pending, refuse(entered))
    // Takes its place in the order before it waits.
    const lane = enqueue(session, key, pending)
    const done = (outcome: Outcome) => void ends(session, key, pending, outcome)
    const message = { key, messageId, data: Buffer.from(data) }
    if (entered instanceof Promise || namespaces.get(namespaceOf(key))?.ask) {
      return publishAdmitted(session, entered, message, lane, pending, done)
    }
    publishInTurn(session, entered, { ...message, from: entered.rights.user ?? '' }, lane, pending, done)
  }

  /** The backend decides whom it lets into the room, and so who publishes there; or it is asked about each message. */
  async function publishAdmitted(
    session: Session,
    entering: Admitted | Problem | Promise<Admitted | Problem>,
    { key, messageId, data }: { key: string; messageId: string | undefined; data: Buffer },
    lane: Lane,
    pending: Pending,
    done: (outcome: Outcome) => void,
  ) {
    const entered = await entering
    if (isProblem(entered)) return done(refuse(entered))
    if (session.ended) return done(refuse(ended))
    const message = { key, messageId, data, from: entered.rights.user ?? '' }
    const ask = namespaces.get(namespaceOf(key))?.ask
    if (ask) {
      const problem = sizeProblem(key, data)
      const taken = problem ?? (await ruleOn(ask, message, session.payer))
      if (isProblem(taken)) return done(refuse(taken))
      message.data = taken
    }
    publishInTurn(session, entered, message, lane, pending, done)
  }

  /** Publishes once those before it are published. */
  function publishInTurn(
    session: Session,
    entered: Admitted,
    message: AskedMessage,
    lane: Lane,
    pending: Pending,
    done: (outcome: Outcome) => void,
  ) {
    pending.send = () => {
      // It may have waited, for a backend's word or its turn: a token that was revoked since publishes nothing.
      const changed = session.ended ? ended : gate.recheck(entered)
      if (changed) done(refuse(changed === 'again' ? otherViewer : changed))
      else publish(message, lane.payer, done)
    }
    sendNext(lane)
  }

  /** Sends what may be sent: nothing overtakes a publish that waits. */
  function sendNext(lane: Lane) {
    // One that is refused at once ends within its own send: a thousand of them would take the whole stack.
    if (lane.isSending) return
    lane.isSending = true
    const { pending } = lane
    for (let next = pending[lane.sent]; next?.send || next?.outcome; next = pending[lane.sent]) {
      lane.sent++
      if (!next.outcome) next.send?.()
    }
    lane.isSending = false
  }

  /**
   * A backend publishes, under any name.
   *
   * @returns never rejects
   */
  function fromBackend({
    key,
    messageId,
    from,
    data,
  }: {
    key: string
    messageId?: string
    from: string
    data: string
  }): Promise<Outcome> {
    const problem = gate.operator('room', key)
    if (problem) return Promise.resolve(refuse(problem))
    return new Promise(resolve => publish({ key, messageId, from, data: Buffer.from(data) }, undefined, resolve))
  }

  /** @param message into a room @param payer who publishes; nobody where a backend does */
  function publish(
    { key, messageId, from, data }: AskedMessage,
    payer: Payer | undefined,
    done: (outcome: Outcome) => void,
  ) {
    const problem = sizeProblem(key, data)
    if (problem) return done(refuse(problem))
    const startMs = now()
    backbone.publish({ room: key, messageId, from, data, payer }, options, outcome => {
      counts.publishSeconds.observe(now() - startMs)
      if (isProblem(outcome)) refuse(outcome)
      else countOne(counts.publishes, outcome.duplicate ? 'duplicate' : 'kept')
      done(outcome)
    })
  }

  function sizeProblem(key: string, data: Buffer): Problem | undefined {
    const bytesMax = namespaces.get(namespaceOf(key))?.bytesMax ?? 0
    if (data.length <= bytesMax) return undefined
    return { code: 'too_large', message: `data is ${data.length} bytes long: ${bytesMax} at most here` }
  }

  function refuse(problem: Problem) {
    countOne(counts.publishes, problem.code)
    return problem
  }

  /** One that has none under way always finds a place. Others may have as much as is left for all: equal shares in the end. */
  function hasTooMany(session: Session) {
    const bytes = (publishers.get(session)?.bytes ?? 0) + session.answersHeld * PUBLISH_BYTES
    return bytes > 0 && bytes >= Math.min(publishesPendingBytesMax, TOTAL_BYTES_MAX - totalBytes)
  }

  function enqueue(session: Session, key: string, pending: Pending) {
    const publisher = publishers.get(session) ?? { bytes: 0, byRoom: new Map() }
    publishers.set(session, publisher)
    publisher.bytes += pending.bytes
    totalBytes += pending.bytes
    const lane = publisher.byRoom.get(key) ?? { payer: session.payer, pending: [], sent: 0, isSending: false }
    publisher.byRoom.set(key, lane)
    lane.pending.push(pending)
    return lane
  }

  function endAtOnce(session: Session, key: string, pending: Pending, problem: Problem) {
    if (!publishers.get(session)?.byRoom.has(key)) return say(session, key, pending.id, problem)
    enqueue(session, key, pending)
    end(session, key, pending, problem)
  }

  /**
   * The outcome of a publish is known. It is answered after all publishes before it.
   *
   * @param pending that is enqueued
   */
  function end(session: Session, key: string, pending: Pending, outcome: Outcome) {
    pending.outcome = outcome
    const publisher = publishers.get(session) as Publisher
    const lane = publisher.byRoom.get(key) as Lane
    const queue = lane.pending
    while (queue[0]?.outcome) {
      const { id, bytes, outcome: known } = queue[0]
      queue.shift()
      if (lane.sent > 0) lane.sent--
      publisher.bytes -= bytes
      totalBytes -= bytes
      say(session, key, id, known)
    }
    sendNext(lane)
    if (queue.length > 0) return
    publisher.byRoom.delete(key)
    if (publisher.byRoom.size === 0) publishers.delete(session)
  }

  function say(session: Session, key: string, id: Pending['id'], outcome: Outcome) {
    if (session.ended) return
    const subscription = subscriptionTo(session, key)
    const answer = answerOf(session, key, id, outcome)
    const held = subscription?.answers
    if (subscription && !isProblem(outcome) && isAhead(outcome, subscription)) {
      holdAnswer(subscription, outcome.seq, answer)
    } else if (subscription && held) {
      // This answer must not overtake the answers before it.
      holdAnswer(subscription, held[held.length - 1].seq, answer)
    } else {
      outbox.send(session, answer, 'publish')
    }
  }

  return {
    fromSession,
    fromBackend,
    underWay: () => publishers.size,
  }
}

const tooMany: Problem = {
  code: 'too_many_waiting',
  message: 'too many publishes of this session are under way: wait for the answers first',
  retryAfterMs: RETRY_MS,
}

const otherViewer: Problem = {
  code: 'too_many_waiting',
  message: 'the session has another user, or another backend decides, since the message came',
  retryAfterMs: RETRY_MS,
}

/** Nobody is told: the session is gone. */
const ended: Problem = { code: 'too_many_waiting', message: 'the session ended' }

/** Whether the publisher is to be sent its message first. Until its stream has begun it is not. */
function isAhead({ epoch, seq }: Published, { topic: room, cursor, placing }: RoomSubscription) {
  return placing === undefined && room.epoch === epoch && cursor < seq
}

function answerOf(session: Session, key: string, id: Pending['id'], outcome: Outcome): ControlMessage {
  if (isProblem(outcome)) return errorAbout(session, key, outcome, id)
  const { epoch, seq, at, duplicate } = outcome
  const published: PublishedOf = { type: 'published', id, key, epoch, seq, at }
  return duplicate ? { ...published, duplicate } : published
}
