// Publishes into rooms: the checks before the journal is asked, and the order of the answers to the publisher.
import type { Published, RoomsBackbone } from '@keycast/backbone'
import {
  type ControlMessage,
  errorMessage,
  isProblem,
  namespaceOf,
  type Problem,
  type Publish,
  type Published as PublishedOf,
  type RequestId,
} from '@keycast/protocol'
import type { JournalNamespaces } from '@keycast/service'
import { type Counts, countOne } from '../../counts.ts'
import type { Outbox } from '../../delivery/outbox.ts'
import type { Admitted, Gate } from '../../gate/gate.ts'
import type { Session } from '../../sessions/session.ts'
import { holdAnswer } from './held-answers.ts'
import { type RoomSubscription, subscriptionTo } from './room.ts'

export type Publishes = ReturnType<typeof createPublishes>

type Outcome = Published | Problem

/** A publish of a session. Its outcome is said after those of the session's earlier ones to the room. */
interface Pending {
  id: RequestId | undefined
  bytes: number
  outcome: Outcome | undefined
}

interface Publisher {
  bytes: number
  byRoom: Map<string, Pending[]>
}

/** The cost of a publish beside its data, or of its answer while that is held: key and ids, and records. */
const PUBLISH_BYTES = 512

/** A client repeats a publish that found no place among those under way after this time. */
const RETRY_MS = 100

interface Deps {
  namespaces: JournalNamespaces
  gate: Pick<Gate, 'enter' | 'operator'>
  backbone: Pick<RoomsBackbone, 'publish'>
  outbox: Pick<Outbox, 'send'>
  /** The outcome is answered within this time. */
  publishMs: number
  /** Of one session. */
  publishesPendingBytesMax: number
  counts: Pick<Counts, 'publishes' | 'publishSeconds'>
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createPublishes({
  namespaces,
  gate,
  backbone,
  outbox,
  publishMs,
  publishesPendingBytesMax,
  counts,
  now,
}: Deps) {
  /** Those with publishes under way. */
  const publishers = new Map<Session, Publisher>()

  /**
   * A client publishes. The answer follows, whatever it is.
   *
   * @returns once it is answered
   */
  function fromSession(session: Session, { id, key, messageId, data }: Publish): Promise<void> | void {
    const pending: Pending = { id, bytes: PUBLISH_BYTES + data.length, outcome: undefined }
    const pendingBytes = publishers.get(session)?.bytes ?? 0
    // Not in its turn: what waits for the turn of others is what is too much already.
    if (pendingBytes + session.answersHeld * PUBLISH_BYTES >= publishesPendingBytesMax) {
      return outbox.send(session, answerOf(key, id, refuse(tooMany), session.subscriptions.has(key)))
    }
    const entered = gate.enter(session, 'publish', key)
    if (!(entered instanceof Promise) && isProblem(entered)) return endAtOnce(session, key, pending, refuse(entered))
    // Takes its place in the order before it waits.
    enqueue(session, key, pending)
    const message = { key, messageId, data }
    const publishing =
      entered instanceof Promise
        ? publishEntered(session, message, entered)
        : publish({ ...message, from: entered.rights.user ?? '' })
    return publishing.then(outcome => end(session, key, pending, outcome))
  }

  /** The backend decides whom it lets into the room, and so who publishes there. */
  async function publishEntered(
    session: Session,
    message: { key: string; messageId?: string; data: string },
    entering: Promise<Admitted | Problem>,
  ): Promise<Outcome> {
    const entered = await entering
    if (isProblem(entered)) return refuse(entered)
    // A revoked token publishes nothing.
    if (session.ended) return refuse(ended)
    return publish({ ...message, from: entered.rights.user ?? '' })
  }

  /**
   * A backend publishes, under any name.
   *
   * @returns never rejects
   */
  async function fromBackend(message: {
    key: string
    messageId?: string
    from: string
    data: string
  }): Promise<Outcome> {
    const problem = gate.operator('room', message.key)
    return problem ? refuse(problem) : publish(message)
  }

  /** @param message its key is a room's */
  async function publish({
    key,
    messageId,
    from,
    data: text,
  }: {
    key: string
    messageId?: string
    from: string
    data: string
  }): Promise<Outcome> {
    const data = Buffer.from(text)
    const bytesMax = namespaces.get(namespaceOf(key))?.bytesMax ?? 0
    if (data.length > bytesMax) {
      return refuse({ code: 'too_large', message: `data is ${data.length} bytes long: ${bytesMax} at most here` })
    }
    const startMs = now()
    const result = await backbone.publish({ room: key, messageId, from, data }, { deadlineMs: publishMs })
    counts.publishSeconds.observe(now() - startMs)
    if (isProblem(result)) return refuse(result)
    countOne(counts.publishes, result.duplicate ? 'duplicate' : 'kept')
    return result
  }

  function refuse(problem: Problem) {
    countOne(counts.publishes, problem.code)
    return problem
  }

  function enqueue(session: Session, key: string, pending: Pending) {
    const publisher = publishers.get(session) ?? { bytes: 0, byRoom: new Map() }
    publishers.set(session, publisher)
    publisher.bytes += pending.bytes
    const queue = publisher.byRoom.get(key)
    if (queue) queue.push(pending)
    else publisher.byRoom.set(key, [pending])
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
    const queue = publisher.byRoom.get(key) as Pending[]
    while (queue[0]?.outcome) {
      const { id, bytes, outcome: known } = queue[0]
      queue.shift()
      publisher.bytes -= bytes
      say(session, key, id, known)
    }
    if (queue.length > 0) return
    publisher.byRoom.delete(key)
    if (publisher.byRoom.size === 0) publishers.delete(session)
  }

  function say(session: Session, key: string, id: Pending['id'], outcome: Outcome) {
    if (session.ended) return
    const subscription = subscriptionTo(session, key)
    const answer = answerOf(key, id, outcome, session.subscriptions.has(key))
    const held = subscription?.answers
    if (subscription && !isProblem(outcome) && isAhead(outcome, subscription)) {
      holdAnswer(subscription, outcome.seq, answer)
    } else if (subscription && held) {
      // This answer must not overtake the answers before it.
      holdAnswer(subscription, held[held.length - 1].seq, answer)
    } else {
      outbox.send(session, answer)
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

/** Nobody is told: the session is gone. */
const ended: Problem = { code: 'too_many_waiting', message: 'the session ended' }

/** Whether the publisher is to be sent its message first. Until its stream has begun it is not. */
function isAhead({ epoch, seq }: Published, { topic: room, cursor, placing }: RoomSubscription) {
  return placing === undefined && room.epoch === epoch && cursor < seq
}

function answerOf(key: string, id: Pending['id'], outcome: Outcome, subscribed: boolean): ControlMessage {
  // The error says nothing about a subscription to the room, which stands.
  if (isProblem(outcome)) return errorMessage(outcome, { id, key, subscribed })
  const { epoch, seq, at, duplicate } = outcome
  const published: PublishedOf = { type: 'published', id, key, epoch, seq, at }
  return duplicate ? { ...published, duplicate } : published
}
